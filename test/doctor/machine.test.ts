import { chmodSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { startEmulator } from '../../src/emulator/index.ts';
import { HubProcess } from '../support/hub-process.ts';
import { AS_NOBODY } from '../support/unprivileged.ts';
import { runDoctorWithin } from './doctor-within.ts';
import { finding } from './finding.ts';

const isRoot = process.getuid?.() === 0;

it('the doctor reports a full disk and a read-only one', async (ctx) => {
  if (!isRoot) ctx.skip('mounting needs root');
  await using emulator = await startEmulator();
  await using hub = await HubProcess.prepare({ emulator });
  const state = join(hub.directory, 'state');
  const mounted = (options: string) => [
    ...['/usr/bin/unshare', '-m', 'sh', '-c'],
    ...[`mount -t tmpfs -o ${options} tmpfs ${state} && exec "$@"`, 'sh'],
  ];
  expect(finding(await runDoctorWithin(hub, mounted('size=1m,mode=700')), 'disk.state')).toBe(
    `fail: ${state} (hub.state_dir) has 1 MiB left: free some space`,
  );
  expect(finding(await runDoctorWithin(hub, mounted('size=90m,nr_inodes=20,mode=700')), 'disk.state')).toMatch(
    /^fail: .*has too many files, only \d+ more/,
  );
  expect(finding(await runDoctorWithin(hub, mounted('size=90m,mode=700,ro')), 'disk.state')).toMatch(
    /^fail: .*is mounted read-only/,
  );
  const inContainer = await runDoctorWithin(hub, mounted('size=90m,mode=700,ro'), { LATCHKEY_CONTAINER: '1' });
  expect(finding(inContainer, 'disk.state')).toBe(
    `fail: ${state} (hub.state_dir) is read-only in this container: mount a volume there ("--volume"), without the option "ro"`,
  );
});

it('the doctor says what it could not check without root, and why', async (ctx) => {
  if (!isRoot) ctx.skip('only root can become another user');
  await using emulator = await startEmulator();
  await using hub = await HubProcess.start({ emulator, metrics: '127.0.0.1:0' });
  chmodSync(hub.directory, 0o755);
  const found = await runDoctorWithin(hub, AS_NOBODY, { XDG_CACHE_HOME: '' });
  const sudo = /^warn: .*because this user has no permission: run this command with sudo$/;
  expect(finding(found, 'configuration')).toMatch(/^ok: /);
  expect(finding(found, 'configuration.secrets')).toMatch(sudo);
  expect(finding(found, 'state')).toMatch(sudo);
  expect(finding(found, 'hub')).toMatch(/^warn: .*run the command with sudo, or join/);
  expect(finding(found, 'ports')).toMatch(sudo);
  expect(finding(found, 'metrics')).toMatch(sudo);
  expect(finding(found, 'portal.home.base_url')).toMatch(/^ok: /);
  chmodSync(hub.directory, 0o700);
  expect(finding(await runDoctorWithin(hub, AS_NOBODY, { XDG_CACHE_HOME: '' }), 'configuration')).toMatch(
    /^warn: .*EACCES.*run this command with sudo$/,
  );
});
