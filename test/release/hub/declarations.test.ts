import { chmodSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import type { Emulator } from '../../../src/emulator/index.ts';
import { logIn } from '../../reliability/fleet.ts';
import { eventually, HubProcess, stateParameterOf } from '../../support/hub-process.ts';
import { rememberSecrets } from '../../support/logs.ts';
import { startPortal } from '../../support/portal.ts';
import { setUpOnce } from '../../support/set-up.ts';

/** A secret as base64 may have it: form encoding changes it. */
const SECRETS = { wallbox: 'wallbox+secret/of%a+maker=', other: 'another-secret-of-a-maker' };
const WALLBOX = '[appliances.wallbox]\nscope = "Monitoring RemoteControl"\nsecret_file = "wallbox.secret"';
const OTHER_SCOPE = WALLBOX.replace('Monitoring RemoteControl', 'Monitoring');

let emulator: Emulator;
let hub: HubProcess;
/** The hub's configuration before anything is declared. */
let configuration: string;

setUpOnce(async (parts) => {
  emulator = parts.use(await startPortal());
  rememberSecrets(Object.values(SECRETS));
});

beforeEach(async () => {
  hub = await HubProcess.prepare({ emulator, here: true });
  configuration = readFileSync(join(hub.directory, 'latchkey.toml'), 'utf8');
  for (const [name, secret] of Object.entries(SECRETS)) write(`${name}.secret`, `${secret}\n`);
});

afterEach(() => hub[Symbol.asyncDispose]());

function write(name: string, content: string): void {
  writeFileSync(join(hub.directory, name), content);
  chmodSync(join(hub.directory, name), 0o600);
}

/** The declaration of an appliance; null: it has its own connection. */
function appliance(name: string, connection: string | null = null): string {
  const line = connection === null ? '' : `connection = "${connection}"\n`;
  return `[appliances.${name}]\nsecret_file = "other.secret"\n${line}`;
}

/** Starts or restarts the hub, with this text after its configuration. */
async function startWith(toml: string): Promise<void> {
  await hub.kill('SIGTERM');
  write('latchkey.toml', `${configuration}\n${toml}\n`);
  await hub.launch();
}

/** The access token of a declared appliance, or the error if it gets none. */
async function token(client_id: string): Promise<string> {
  const { body } = await hub.requestToken({ client_id, client_secret: SECRETS.other });
  return String(body['access_token'] ?? body['error']);
}

/** The token endpoint's response to these credentials: a status, and the error or the scope. */
async function tokenResult(client_id: string, client_secret: string): Promise<string> {
  const { status, body } = await hub.requestToken({ client_id, client_secret });
  return `${status} ${body['error'] ?? body['scope']}`;
}

function logged(event: string): Promise<Record<string, unknown>> {
  return eventually(async () => hub.events(event)[0]);
}

test('a declared appliance exists from the first start with its configured secret, and only the file can remove it', async () => {
  await startWith(WALLBOX);
  expect(await hub.appliance('wallbox')).toMatchObject({
    client_id: 'wallbox',
    state: 'unpaired',
    scope: 'Monitoring RemoteControl',
    portal: 'home',
  });
  expect(await tokenResult('wallbox', SECRETS.other)).toBe('401 invalid_client');
  expect(await hub.cli('appliance', 'remove', 'wallbox', '--yes')).toMatchObject({
    status: 1,
    stderr: expect.stringContaining('[appliances.wallbox]'),
  });
  await hub.ask(async (control) => {
    const invite = { name: 'wallbox', scope: null, portal: null, connection: null, ttl: 60 };
    await expect(control.request('rotateSecret', { name: 'wallbox' })).rejects.toThrow('[appliances.wallbox]');
    await expect(control.request('addAppliance', { name: 'wallbox' })).rejects.toThrow('wallbox already exists');
    await expect(control.request('invite', invite)).rejects.toThrow('wallbox already exists');
  });
  expect(await tokenResult('wallbox', SECRETS.wallbox)).toBe('400 invalid_grant');
  await hub.pair('wallbox', emulator);
  expect(await tokenResult('wallbox', SECRETS.wallbox)).toBe('200 Monitoring RemoteControl');
  expect(await tokenResult('wallbox', encodeURIComponent(SECRETS.wallbox))).toBe('200 Monitoring RemoteControl');
});

test('an appliance that is no longer declared keeps its grant, but gets no tokens until it has credentials again', async () => {
  await startWith(WALLBOX);
  await hub.pair('wallbox', emulator);
  await startWith('');
  expect(await logged('appliance_undeclared')).toMatchObject({
    level: 'warn',
  });
  expect(await tokenResult('wallbox', SECRETS.wallbox)).toBe('401 invalid_client');
  expect(await hub.appliance('wallbox')).toMatchObject({ state: 'active', without_credentials: true });
  expect((await hub.cli('status')).stdout).toContain('latchkey appliance rotate-secret wallbox');

  await startWith(WALLBOX);
  expect(await hub.appliance('wallbox')).not.toHaveProperty('without_credentials');
  expect(await tokenResult('wallbox', SECRETS.wallbox)).toBe('200 Monitoring RemoteControl');

  await startWith('');
  const rotated = await hub.ask((control) => control.request('rotateSecret', { name: 'wallbox' }));
  rememberSecrets([rotated.client_secret]);
  expect(await tokenResult(rotated.client_id, rotated.client_secret)).toBe('200 Monitoring RemoteControl');
  await hub.ask((control) => control.request('removeAppliance', { name: 'wallbox' }));
  expect((await hub.status()).appliances).toEqual([]);
});

test('a changed secret and client_id apply from the next start, and a changed scope only needs another pairing', async () => {
  await startWith(WALLBOX);
  await hub.pair('wallbox', emulator);
  await startWith(`${OTHER_SCOPE.replace('wallbox.secret', 'other.secret')}\nclient_id = "charger.1"`);
  expect(await tokenResult('wallbox', SECRETS.wallbox)).toBe('401 invalid_client');
  expect(await tokenResult('charger.1', SECRETS.wallbox)).toBe('401 invalid_client');
  expect(await tokenResult('charger.1', SECRETS.other)).toBe('200 Monitoring RemoteControl');

  expect(await logged('scope_changed')).toMatchObject({ level: 'warn', connection: 'wallbox' });
  expect(await hub.appliance('wallbox')).toMatchObject({
    state: 'active',
    scope: 'Monitoring RemoteControl',
    wanted_scope: 'Monitoring',
  });
  expect((await hub.cli('appliance', 'list')).stdout).toMatch(
    /was changed to Monitoring; until .* keeps Monitoring RemoteControl: latchkey pair wallbox/,
  );
  await hub.pair('wallbox', emulator);
  expect(await hub.appliance('wallbox')).not.toHaveProperty('wanted_scope');
  expect(await tokenResult('charger.1', SECRETS.other)).toBe('200 Monitoring');
});

test('with on_start the hub pairs an unpaired appliance and one with a changed scope, and logs the link', async () => {
  const onStart = '[pairing]\non_start = true\n';
  const login = async () => {
    const { authorize_url } = await logged('login_link_created');
    await logIn(emulator, String(authorize_url));
  };
  await startWith(onStart + WALLBOX);
  await login();
  expect(await tokenResult('wallbox', SECRETS.wallbox)).toBe('200 Monitoring RemoteControl');
  await startWith(onStart + OTHER_SCOPE);
  await login();
  expect(await tokenResult('wallbox', SECRETS.wallbox)).toBe('200 Monitoring');
  await startWith(onStart + OTHER_SCOPE);
  expect(await hub.appliance('wallbox')).not.toHaveProperty('authorize_url');
});

/** A declared appliance of this portal, as a TOML table. */
function table(name: string, { baseUrl, frontendUrl, clientId, clientSecret }: Emulator): string {
  write(`${name}-client.secret`, clientSecret);
  return `[portals.${name}]\nbase_url = "${baseUrl}"\nfrontend_url = "${frontendUrl}"\nclient_id = "${clientId}"\nclient_secret_file = "${name}-client.secret"\n`;
}

/** Restarts the hub with these portals instead of its own; the rest of its configuration is unchanged. */
async function startWithPortals(tables: string): Promise<void> {
  const before = configuration;
  configuration = before.replace(/\[portals\.[\s\S]*$/, '');
  await startWith(`${tables}${WALLBOX}`);
  configuration = before;
}

test('a declared appliance that moves to another portal gets a suspended grant, and its open pairing ends', async () => {
  await using bench = await startPortal();
  await startWithPortals(table('home', emulator));
  await hub.pair('wallbox', emulator);
  const link = await hub.beginPairing('wallbox');
  await startWithPortals(table('bench', bench) + table('home', emulator));
  expect(await logged('connection_moved')).toMatchObject({ level: 'warn', portal: 'bench' });
  const moved = await hub.appliance('wallbox');
  expect(moved).toMatchObject({ state: 'needs_pairing', portal: 'bench', expires_in: null });
  expect(moved.problem?.message).toContain(emulator.frontendUrl);
  expect(moved).not.toHaveProperty('authorize_url');
  expect(await logIn(emulator, link)).toContain('is not connected');
  expect(await tokenResult('wallbox', SECRETS.wallbox)).toBe('400 invalid_grant');
  await expect(hub.ask((control) => control.request('refresh', { name: 'wallbox' }))).rejects.toThrow('pair');

  // The earlier appliance's table is gone, and this appliance is not a renamed one.
  await startWithPortals(table('cloud', bench));
  expect(await hub.appliance('wallbox')).toMatchObject({ state: 'needs_pairing', portal: 'cloud' });
  await expect(hub.ask((control) => control.request('refresh', { name: 'wallbox' }))).rejects.toThrow('pair');
  expect(bench.requests.filter(({ endpoint }) => endpoint === 'token')).toEqual([]);

  await startWithPortals(table('renamed', emulator));
  expect(await hub.appliance('wallbox')).toMatchObject({ state: 'active', portal: 'renamed' });
  expect(await hub.ask((control) => control.request('refresh', { name: 'wallbox' }))).toMatchObject({
    state: 'active',
    problem: null,
  });
  expect(await tokenResult('wallbox', SECRETS.wallbox)).toBe('200 Monitoring RemoteControl');
});

test('an added appliance follows a renamed portal, and has a suspended grant if its portal becomes another one', async () => {
  await using bench = await startPortal();
  await startWithPortals(table('home', emulator));
  const added = await hub.addAppliance('heater', 'Monitoring');
  await hub.pair('heater', emulator);
  await startWithPortals(table('bench', bench) + table('renamed', emulator));
  expect(await hub.appliance('heater')).toMatchObject({ state: 'active', portal: 'renamed' });
  expect(await hub.ask((control) => control.request('refresh', { name: 'heater' }))).toMatchObject({
    state: 'active',
    problem: null,
  });
  await startWithPortals(table('renamed', bench));
  expect(await hub.appliance('heater')).toMatchObject({ state: 'needs_pairing', portal: 'renamed' });
  expect(await tokenResult(added.client_id, added.client_secret)).toBe('400 invalid_grant');
  const otherApi = table('renamed', { ...emulator, baseUrl: bench.baseUrl });
  for (const tables of [otherApi, table('renamed', emulator)]) {
    await startWithPortals(tables);
    expect(await tokenResult(added.client_id, added.client_secret)).toBe('200 Monitoring');
  }
});

test('an open pairing follows a renamed portal, and a login through its link still counts', async () => {
  await startWithPortals(table('home', emulator));
  rememberSecrets([(await hub.addAppliance('heater', 'Monitoring')).client_secret]);
  await hub.pair('heater', emulator);
  const state = stateParameterOf(await hub.beginPairing('heater'));
  await startWithPortals(table('renamed', emulator));
  const before = emulator.grants().length;
  await emulator.login({ state, user: 'demo' });
  await eventually(async () => emulator.grants().length > before, 20);
  await eventually(async () => (await hub.appliance('heater')).state === 'active', 20);
  expect(await hub.appliance('heater')).toMatchObject({ portal: 'renamed' });
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
