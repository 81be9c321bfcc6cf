// No kernel with AppArmor is needed here: the files that a hub uses are compared with the rules of the app's profile.
import { existsSync, readFileSync, realpathSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { expect, it } from 'vitest';
import { canTraceSystemCalls } from '../../chaos/system-calls.ts';
import { root } from '../../project/checkout.ts';
import { EmulatorProcess } from '../../support/emulator-process.ts';
import { HubProcess } from '../../support/hub-process.ts';
import { SHARED_CACHE } from '../../support/program.ts';
import { stateFolder } from '../../support/state-folder.ts';
import { APPARMOR_PARSER, isAllowed, readFileAccesses, readFileRules } from './app-armor-profile.ts';

const PROFILE = join(root, 'scripts/home-assistant.d/apparmor.txt');
const STRACE = '/usr/bin/strace';

it('the profile of the app allows every file that a hub uses while it pairs, refreshes and writes a snapshot', async (ctx) => {
  if (!existsSync(APPARMOR_PARSER)) ctx.skip(`${APPARMOR_PARSER} is missing`);
  if (!canTraceSystemCalls()) ctx.skip('needs strace, and the permission to use it');
  using folder = stateFolder();
  const trace = join(folder.path, 'trace');
  await using emulator = await EmulatorProcess.start();
  const within = [STRACE, '-D', '-f', '-qq', '-s', '4096', '-o', trace, '-e', 'trace=%file', '-e', 'signal=none'];
  // The image contains no other programs.
  const env = { PATH: '/nowhere', TMPDIR: '/dev/shm' };
  await using hub = await HubProcess.start({ emulator, appPortal: {}, within, env });
  const wallbox = await hub.addAppliance('wallbox');
  await hub.pair('wallbox', emulator);
  await hub.ask((control) => control.request('refresh', { name: 'wallbox' }));
  expect((await hub.requestToken(wallbox)).status).toBe(200);
  await hub.ask((control) => control.request('takeSnapshot'));
  await hub.kill('SIGTERM');

  const accesses = readFileAccesses(readFileSync(trace, 'utf8'));
  const state = join(hub.directory, 'state');
  const inImage = (path: string) => {
    const isNode = ['/proc/1/exe', process.execPath, realpathSync(process.execPath)].includes(path);
    if (isNode) return '/usr/lib/latchkey/bin/node';
    const places = {
      [state]: '/data/latchkey',
      [hub.directory]: '/data',
      [SHARED_CACHE]: '/var/cache',
      [root]: '/usr/lib/latchkey',
    };
    const place = Object.entries(places).find(([own]) => path === own || path.startsWith(`${own}/`));
    return place === undefined ? path : `${place[1]}${path.slice(place[0].length)}`;
  };
  // Node.js looks at each folder above a module; in the image these are above /usr/lib/latchkey.
  const above = new Set<string>();
  for (const path of [root, hub.directory, process.execPath]) {
    for (let folderAbove = dirname(path); folderAbove !== '/'; folderAbove = dirname(folderAbove))
      above.add(folderAbove);
  }
  const used = accesses
    .filter(({ path }) => !above.has(path))
    .map(({ path, access }) => ({ path: inImage(path), access }));
  expect(used.map(({ path }) => path)).toEqual(
    expect.arrayContaining(['/data/options.json', '/data/latchkey/latchkey.db', '/proc/sys/kernel/random/boot_id']),
  );
  const rules = await readFileRules(PROFILE);
  const denied = used.filter(({ path, access }) => !isAllowed(rules, path, access));
  expect([...new Set(denied.map(({ path, access }) => `${path} ${access}`))]).toEqual([]);

  // A profile without one of its rules does not pass.
  const lesser = join(folder.path, 'apparmor.txt');
  writeFileSync(lesser, readFileSync(PROFILE, 'utf8').replace('/data/latchkey/** rwkl,', '/data/latchkey/** r,'));
  const fewer = await readFileRules(lesser);
  expect(used.filter(({ path, access }) => !isAllowed(fewer, path, access))).not.toEqual([]);
  for (const path of ['/etc/shadow', '/data/other.json', '/root/.ssh/id_ed25519', '/usr/bin/sh']) {
    expect(isAllowed(rules, path, 'r'), path).toBe(false);
  }
});
