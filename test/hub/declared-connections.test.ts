import { chmodSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import type { Emulator } from '../../src/emulator/index.ts';
import { eventually, HubProcess } from '../support/hub-process.ts';
import { rememberSecrets } from '../support/logs.ts';
import { startPortal } from '../support/portal.ts';
import { setUpOnce } from '../support/set-up.ts';

const SECRET = 'the-secret-of-every-declared-appliance';
const FAMILY = '[connections.family]\nscope = "Monitoring"\n';

let emulator: Emulator;
let hub: HubProcess;
/** The hub's configuration before anything is declared. */
let configuration: string;

setUpOnce(async (parts) => {
  emulator = parts.use(await startPortal());
  rememberSecrets([SECRET]);
});

beforeEach(async () => {
  hub = await HubProcess.prepare({ emulator, here: true });
  configuration = readFileSync(join(hub.directory, 'latchkey.toml'), 'utf8');
  write('appliance.secret', SECRET);
});

afterEach(() => hub[Symbol.asyncDispose]());

function write(name: string, content: string): void {
  writeFileSync(join(hub.directory, name), content);
  chmodSync(join(hub.directory, name), 0o600);
}

/** The declaration of an appliance; null: it has its own connection. */
function appliance(name: string, connection: string | null = null): string {
  const line = connection === null ? '' : `connection = "${connection}"\n`;
  return `[appliances.${name}]\nsecret_file = "appliance.secret"\n${line}`;
}

/** Starts or restarts the hub, with this text after its configuration. */
async function startWith(toml: string): Promise<void> {
  await hub.kill('SIGTERM');
  write('latchkey.toml', `${configuration}\n${toml}\n`);
  await hub.launch();
}

/** The access token of an appliance, or the error if it gets none. */
async function token(client_id: string): Promise<string> {
  const { body } = await hub.requestToken({ client_id, client_secret: SECRET });
  return String(body['access_token'] ?? body['error']);
}

test('declared appliances share a declared connection, which is paired once', async () => {
  const toml = appliance('dashboard', 'family') + FAMILY + appliance('thermostat', 'family');
  await startWith(toml);
  expect(await hub.status()).toMatchObject({
    connections: [
      {
        name: 'family',
        declared: true,
        state: 'unpaired',
        scope: 'Monitoring',
        appliances: ['dashboard', 'thermostat'],
      },
    ],
    appliances: [
      { name: 'dashboard', connection: 'family', declared: true },
      { name: 'thermostat', connection: 'family', declared: true },
    ],
  });
  await hub.pair('family', emulator);
  const issued = await token('dashboard');
  expect(await token('thermostat')).toBe(issued);
  await startWith(toml);
  expect(await token('thermostat')).toBe(issued);
  const removal = expect.stringContaining('family is declared in the hub');
  await expect(hub.ask((control) => control.removeConnection('family', true))).rejects.toMatchObject({
    code: 'connection_declared',
    message: removal,
  });
  await expect(hub.ask((control) => control.addConnection('family', null, null))).rejects.toMatchObject({
    code: 'connection_exists',
    message: expect.stringContaining('declared'),
  });
  await expect(hub.ask((control) => control.moveAppliance('dashboard', 'thermostat'))).rejects.toThrow();
});

test('a connection that is no longer declared keeps its grant, and goes if it has none', async () => {
  const unused = '[connections.unused]\n';
  await startWith(FAMILY + unused + appliance('dashboard', 'family'));
  await hub.pair('family', emulator);
  const issued = await token('dashboard');
  await startWith(appliance('dashboard'));
  const undeclared = await eventually(async () => {
    const found = hub.events('connection_undeclared');
    return found.length === 2 && found;
  });
  expect(undeclared).toMatchObject([
    { connection: 'family', kept: true },
    { connection: 'unused', kept: false },
  ]);
  const { connections } = await hub.status();
  expect(connections).toMatchObject([
    { name: 'dashboard', state: 'unpaired', own: true },
    { name: 'family', state: 'active', appliances: [] },
  ]);
  expect(connections[1]).not.toHaveProperty('declared');
  expect(await token('dashboard')).toBe('invalid_grant');

  await startWith(FAMILY + appliance('dashboard', 'family'));
  expect(await token('dashboard')).toBe(issued);
  expect((await hub.status()).connections).toMatchObject([{ name: 'family', declared: true }]);
});

test('a declared appliance can use the own connection of one that is declared after it', async () => {
  await startWith(appliance('dashboard', 'thermostat') + appliance('thermostat'));
  await hub.pair('thermostat', emulator);
  const issued = await token('thermostat');
  expect(await token('dashboard')).toBe(issued);
  expect((await hub.status()).connections).toMatchObject([
    { name: 'thermostat', state: 'active', appliances: ['dashboard', 'thermostat'] },
  ]);

  await startWith(appliance('dashboard') + appliance('thermostat'));
  expect(await token('thermostat')).toBe(issued);
  expect(await token('dashboard')).toBe('invalid_grant');
});

test('a reload declares a connection for an appliance that was added by hand, and keeps its grant', async () => {
  await startWith('');
  const { client_id, client_secret } = await hub.addAppliance('thermostat', 'Monitoring');
  await hub.pair('thermostat', emulator);
  const { body } = await hub.requestToken({ client_id, client_secret });
  const toml = `[connections.thermostat]\nscope = "Monitoring"\n${appliance('dashboard', 'thermostat')}`;
  write('latchkey.toml', `${configuration}\n${toml}`);
  await hub.reload();
  expect(await token('dashboard')).toBe(body['access_token']);
  expect((await hub.requestToken({ client_id, client_secret })).body).toMatchObject({
    access_token: body['access_token'],
  });
});
