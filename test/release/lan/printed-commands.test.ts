import { execFile } from 'node:child_process';
import { mkdtempDisposable } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect, it } from 'vitest';
import type { Emulator } from '../../../src/emulator/index.ts';
import { HubProcess } from '../../support/hub-process.ts';
import { rememberSecrets } from '../../support/logs.ts';
import { startPortal } from '../../support/portal.ts';
import { MAIN, SHARED_CACHE } from '../../support/program.ts';
import { setUpOnce } from '../../support/set-up.ts';

const run = promisify(execFile);

let emulator: Emulator;
let hub: HubProcess;

setUpOnce(async (parts) => {
  emulator = parts.use(await startPortal());
  hub = parts.use(await HubProcess.start({ emulator }));
});

it('the curl commands that "latchkey appliance add" prints get a token that the cloud API accepts', async () => {
  const { stdout } = await hub.cli('appliance', 'add', 'car', '--scope', 'Monitoring');
  rememberSecrets([/client_secret +(\S+)/.exec(stdout)?.[1] ?? '']);
  await hub.pair('car', emulator);
  const token = await printed(stdout);
  expect(token).toMatchObject({ token_type: 'Bearer', scope: 'Monitoring' });
  const whoami = await fetch(`${emulator.baseUrl}/api/whoami`, {
    headers: { authorization: `Bearer ${token['access_token']}` },
  });
  expect(await whoami.json()).toMatchObject({ user: 'demo' });
});

it('the curl commands that "latchkey invite" prints register an appliance', async () => {
  const { stdout } = await hub.cli('invite', '--for', 'boat', '--scope', 'Monitoring');
  rememberSecrets([/token +(\S+)/.exec(stdout)?.[1] ?? '']);
  const { client_id, client_secret } = await printed(stdout);
  rememberSecrets([String(client_secret)]);
  expect(await hub.appliance('boat')).toMatchObject({ client_id, state: 'unpaired', scope: 'Monitoring' });
});

/** Runs the commands that the command line printed. @returns the output of the last one */
async function printed(stdout: string): Promise<Record<string, unknown>> {
  await using folder = await mkdtempDisposable(join(tmpdir(), 'latchkey-printed-'));
  const lines = stdout.slice(stdout.indexOf('latchkey ca >'));
  expect(lines).toContain('curl --cacert');
  const shell = `latchkey() { "$NODE" "$MAIN" "$@" --config "$CONFIG"; }\n${lines}`;
  const env = {
    PATH: process.env['PATH'],
    XDG_CACHE_HOME: SHARED_CACHE,
    NODE: process.execPath,
    MAIN,
    CONFIG: join(hub.directory, 'latchkey.toml'),
  };
  const result = await run('/bin/sh', ['-ec', shell], { cwd: folder.path, env });
  return JSON.parse(result.stdout) as Record<string, unknown>;
}
