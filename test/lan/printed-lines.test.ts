import { execFile } from 'node:child_process';
import { mkdtempDisposable } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect, it } from 'vitest';
import { startEmulator } from '../../src/emulator/index.ts';
import { HubProcess } from '../support/hub-process.ts';
import { rememberSecrets } from '../support/logs.ts';

const run = promisify(execFile);

it('curl gets a token that the cloud API takes, with the very lines that "appliance add" prints', async () => {
  await using emulator = await startEmulator();
  await using hub = await HubProcess.start({ emulator });
  await using folder = await mkdtempDisposable(join(tmpdir(), 'latchkey-printed-'));
  const { stdout } = await hub.cli('appliance', 'add', 'car', '--scope', 'Monitoring');
  rememberSecrets([/client_secret +(\S+)/.exec(stdout)?.[1] ?? '']);
  await hub.pair('car', emulator);
  const lines = stdout.slice(stdout.indexOf('latchkey ca >'));
  expect(lines).toContain('curl --cacert');
  const shell = `latchkey() { "$NODE" "$MAIN" "$@" --config "$CONFIG"; }\n${lines}`;
  const env = {
    PATH: process.env['PATH'],
    NODE: process.execPath,
    MAIN: join(import.meta.dirname, '../../src/main.ts'),
    CONFIG: join(hub.directory, 'latchkey.toml'),
  };
  const printed = await run('/bin/sh', ['-ec', shell], { cwd: folder.path, env });
  const token = JSON.parse(printed.stdout) as Record<string, unknown>;
  expect(token).toMatchObject({ token_type: 'Bearer', scope: 'Monitoring' });
  const whoami = await fetch(`${emulator.baseUrl}/api/whoami`, {
    headers: { authorization: `Bearer ${token['access_token']}` },
  });
  expect(await whoami.json()).toMatchObject({ user: 'demo' });
  rememberSecrets(emulator.secretsIssued('code', 'access_token', 'refresh_token'));
});
