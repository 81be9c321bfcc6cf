import { mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { beforeAll, expect, test } from 'vitest';
import {
  runLatchkey,
  shareFakeAdministration,
  spawnLatchkey,
  spawnOnTerminal,
  startOnTerminal,
} from '../../cli/command.ts';
import type { RunningCommand } from '../../cli/running-command.ts';
import { rememberSecrets } from '../../support/logs.ts';

const PASSPHRASE = 'four words at random';
const folder = mkdtempSync(join(tmpdir(), 'lk-kept-'));

const hub = shareFakeAdministration();

beforeAll(async () => {
  rememberSecrets([PASSPHRASE]);
  writeFileSync(join(folder, 'passphrase'), PASSPHRASE, { mode: 0o600 });
  writeFileSync(join(folder, 'copy'), 'a.sealed.copy\n');
  hub.administration.set({ name: 'wallbox', state: 'active', scope: 'A', expiresIn: 3600 });
  hub.administration.script = [
    { event: 'waiting', authorizeUrl: 'https://portal.example/authorize?state=0123456789', expiresIn: 900 },
    { event: 'failed', reason: 'expired', message: 'nobody logged in' },
  ];
});

test.each([
  '',
  'status',
  'appliance add wallbox',
  'pair wallbox --json',
  'backup FOLDER/out --force --passphrase-file FOLDER/passphrase',
  'restore FOLDER/copy --yes --passphrase-file FOLDER/passphrase',
  'serve --config /nowhere.toml',
])('"%s" has the same result in a process that has run other commands as in a new one', async (line) => {
  const args = line.split(' ').flatMap((word) => (word === '' ? [] : word.replace('FOLDER', folder)));
  const env = { ...hub.env, NO_COLOR: '1', TZ: 'Europe/Berlin' };
  // The previous command has other arguments and another environment.
  await runLatchkey(['token', 'nobody'], { ...hub.env, LATCHKEY_DEBUG: '1', TZ: 'Asia/Tokyo' });
  const shared = await runLatchkey(args, env);
  expect(shared).toEqual(await spawnLatchkey(args, env).ended);
  expect(shared.stdout + shared.stderr).not.toBe('');
});

test('a command on a terminal has the same result in a process that has run other commands as in a new one', async () => {
  const question = async (running: RunningCommand) => {
    await running.stdout(/\[y\/N\] /);
    running.process.stdin?.write('n\r');
    return running.ended;
  };
  await startOnTerminal(['status'], { ...hub.env, NO_COLOR: '1' }, 80, 24).ended;
  const args = ['unpair', 'wallbox'];
  const shared = await question(startOnTerminal(args, hub.env));
  expect(shared).toEqual(await question(spawnOnTerminal(args, hub.env)));
  expect(await startOnTerminal(['status'], hub.env).ended).toEqual(await spawnOnTerminal(['status'], hub.env).ended);
});
