import { execFile } from 'node:child_process';
import { chmodSync, existsSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import type { NamedCheckResult } from '../../src/doctor/check-result.ts';
import { startEmulator } from '../../src/emulator/index.ts';
import { prepareSiteHub } from '../site/site-hubs.ts';
import { scaleDeadline } from '../support/deadlines.ts';
import { HubProcess } from '../support/hub-process.ts';
import { postgresSkipReason } from '../support/postgres/cluster.ts';
import { startPostgres } from '../support/postgres/server.ts';
import { MAIN, SHARED_CACHE } from '../support/program.ts';

const FAKETIME = `/usr/lib/${process.arch === 'arm64' ? 'aarch64' : 'x86_64'}-linux-gnu/faketime/libfaketimeMT.so.1`;
const isRoot = process.getuid?.() === 0;

/** Runs the doctor on a hub, started by another program. */
function within(
  hub: HubProcess,
  command: readonly string[],
  env: NodeJS.ProcessEnv = {},
): Promise<Map<string, NamedCheckResult>> {
  const doctor = [process.execPath, MAIN, 'doctor', '--json', '--config', join(hub.directory, 'latchkey.toml')];
  const [program = '', ...args] = [...command, ...doctor];
  const options = {
    timeout: scaleDeadline(30_000),
    env: { PATH: process.env['PATH'], HOME: hub.directory, XDG_CACHE_HOME: SHARED_CACHE, ...env },
  };
  return new Promise((resolve, reject) => {
    execFile(program, args, options, (error, stdout, stderr) => {
      if (!stdout.startsWith('{')) reject(new Error(stderr || String(error)));
      else
        resolve(
          new Map((JSON.parse(stdout) as { checks: NamedCheckResult[] }).checks.map((check) => [check.name, check])),
        );
    });
  });
}

it("the doctor recognises a clock that is a year ahead by the portal's time", async (ctx) => {
  if (!existsSync(FAKETIME)) ctx.skip('libfaketime is missing');
  await using emulator = await startEmulator();
  await using hub = await HubProcess.prepare({ emulator });
  const env = { LD_PRELOAD: FAKETIME, FAKETIME: '+400d', DONT_FAKE_MONOTONIC: '1' };
  expect((await within(hub, [], env)).get('clock')).toMatchObject({
    result: 'fail',
    detail: expect.stringMatching(/34\d{6} s ahead of http/),
  });
  expect((await within(hub, [], { ...env, FAKETIME: '1999-12-31 23:00:00' })).get('clock')).toMatchObject({
    result: 'fail',
    detail: expect.stringMatching(/the clock is wrong, it says 1999-/),
  });
});

it('the doctor reports an expired portal certificate, and that the clock may be wrong', async (ctx) => {
  if (!existsSync(FAKETIME)) ctx.skip('libfaketime is missing');
  await using emulator = await startEmulator({ tls: true });
  await using hub = await HubProcess.prepare({ emulator });
  const env = { LD_PRELOAD: FAKETIME, FAKETIME: '+9000d', DONT_FAKE_MONOTONIC: '1' };
  const found = await within(hub, [], env);
  expect(found.get('portal.home.base_url'), JSON.stringify([...found.values()])).toMatchObject({
    result: 'fail',
    detail: expect.stringMatching(
      /it expired on \d{4}-\d\d-\d\d, and this machine's clock says 20\d\d-.*the check "clock" says/,
    ),
  });
});

it("the doctor sends nobody to a server whose certificate is not valid by this machine's clock", async (ctx) => {
  const reason = existsSync(FAKETIME) ? postgresSkipReason() : 'libfaketime is missing';
  if (reason !== null) ctx.skip(reason);
  await using server = await startPostgres();
  await using hub = await prepareSiteHub(await server.createDatabase(), 'attic');
  const env = { LD_PRELOAD: FAKETIME, FAKETIME: '+9000d', DONT_FAKE_MONOTONIC: '1' };
  expect((await within(hub, [], env)).get('database')).toMatchObject({
    result: 'fail',
    detail: expect.stringMatching(/certificate has expired\): check the clock of this hub and the dates of [^:]*$/),
  });
});

it('the doctor reports a full disk and a read-only one', async (ctx) => {
  if (!isRoot) ctx.skip('mounting needs root');
  await using emulator = await startEmulator();
  await using hub = await HubProcess.prepare({ emulator });
  const state = join(hub.directory, 'state');
  const mounted = (options: string) => [
    'unshare',
    '-m',
    'sh',
    '-c',
    `mount -t tmpfs -o ${options} tmpfs ${state} && exec "$@"`,
    'sh',
  ];
  expect((await within(hub, mounted('size=1m,mode=700'))).get('disk.state')).toMatchObject({
    result: 'fail',
    detail: `${state} (hub.state_dir) has 1 MiB left: free some space`,
  });
  expect((await within(hub, mounted('size=90m,nr_inodes=20,mode=700'))).get('disk.state')).toMatchObject({
    result: 'fail',
    detail: expect.stringMatching(/has too many files, only \d+ more/),
  });
  expect((await within(hub, mounted('size=90m,mode=700,ro'))).get('disk.state')).toMatchObject({
    result: 'fail',
    detail: expect.stringMatching(/is mounted read-only/),
  });
  const inContainer = await within(hub, mounted('size=90m,mode=700,ro'), { LATCHKEY_CONTAINER: '1' });
  expect(inContainer.get('disk.state')).toMatchObject({
    result: 'fail',
    detail: `${state} (hub.state_dir) is read-only in this container: mount a volume there ("--volume"), without the option "ro"`,
  });
});

it('the doctor says what it could not check without root, and why', async (ctx) => {
  if (!isRoot) ctx.skip('only root can become another user');
  await using emulator = await startEmulator();
  await using hub = await HubProcess.start({ emulator, metrics: '127.0.0.1:0' });
  chmodSync(hub.directory, 0o755);
  const unprivileged = ['setpriv', '--reuid=65534', '--regid=65534', '--clear-groups'];
  const found = await within(hub, unprivileged, { XDG_CACHE_HOME: '' });
  const sudo = {
    result: 'warn',
    detail: expect.stringMatching(/because this user has no permission: run this command with sudo$/),
  };
  expect(found.get('configuration')?.result).toBe('ok');
  expect(found.get('configuration.secrets')).toMatchObject(sudo);
  expect(found.get('state')).toMatchObject(sudo);
  expect(found.get('hub')).toMatchObject({
    result: 'warn',
    detail: expect.stringMatching(/run the command with sudo, or join/),
  });
  expect(found.get('ports')).toMatchObject(sudo);
  expect(found.get('metrics')).toMatchObject(sudo);
  expect(found.get('portal.home.base_url')?.result).toBe('ok');
  chmodSync(hub.directory, 0o700);
  expect((await within(hub, unprivileged, { XDG_CACHE_HOME: '' })).get('configuration')).toMatchObject({
    result: 'warn',
    detail: expect.stringMatching(/EACCES.*run this command with sudo$/),
  });
});
