import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Configuration, loadConfiguration, readConfiguration } from '../../src/configuration/configuration.ts';
import { stateFolder } from '../support/state-folder.ts';

const folder = stateFolder();
const file = join(folder.path, 'latchkey.toml');
afterAll(() => folder[Symbol.dispose]());

beforeAll(() => {
  writeFileSync(join(folder.path, 'secret'), 'a-secret-of-enough-characters', { mode: 0o600 });
});

/** Two portals; `home` is the default one. */
const PORTALS = ['home', 'away']
  .map(
    (name) => `[portals.${name}]
base_url = "https://api.${name}.example"
frontend_url = "https://${name}.example"
client_id = "0f4b3c52-6a1e-4d9b-9d57-2c8f1e6a7b90"
client_secret_file = "secret"
`,
  )
  .join('');

/** The declaration of an appliance. @param keys further lines */
function appliance(name: string, ...keys: string[]): string {
  return [`[appliances.${name}]`, 'secret_file = "secret"', ...keys, ''].join('\n');
}

/** The declaration of a connection. */
function connection(name: string, ...keys: string[]): string {
  return [`[connections.${name}]`, ...keys, ''].join('\n');
}

function load(declarations: string, env: NodeJS.ProcessEnv = {}): Promise<Configuration> {
  writeFileSync(file, `${declarations}\n${PORTALS}`);
  return loadConfiguration(file, { HOME: folder.path, ...env });
}

async function errorMessage(declarations: string, env: NodeJS.ProcessEnv = {}): Promise<string> {
  const failure: unknown = await load(declarations, env).then(
    () => null,
    (error: unknown) => error,
  );
  expect(failure).toMatchObject({ code: 'config_invalid', message: expect.stringMatching(/^[^\n]+$/) });
  return failure instanceof Error ? failure.message : '';
}

describe('a declared connection', () => {
  it('a declared connection can have all its keys', async () => {
    const { connections } = await load(connection('netatmo', 'portal = "away"', 'scope = " B  A B "'));
    expect(connections).toEqual([{ name: 'netatmo', scope: 'B A', portal: 'away' }]);
  });

  it('environment variables override the keys of a declared connection, and can declare one', async () => {
    const { connections } = await load(connection('heating', 'scope = "A"', 'portal = "away"'), {
      LATCHKEY_CONNECTIONS_HEATING_SCOPE: 'Monitoring RemoteControl',
      LATCHKEY_CONNECTIONS_LIVING_ROOM_PORTAL: 'away',
    });
    expect(connections).toEqual([
      { name: 'heating', scope: 'Monitoring RemoteControl', portal: 'away' },
      { name: 'living-room', scope: null, portal: 'away' },
    ]);
  });
});

describe('the connection of a declared appliance', () => {
  it('several declared appliances can use one declared connection, whatever the order of the sections', async () => {
    const { appliances, connections } = await load(
      appliance('thermostat', 'connection = "netatmo"', 'scope = "A B"', 'portal = "home"') +
        connection('netatmo', 'scope = "B A"') +
        appliance('dashboard', 'connection = "netatmo"'),
    );
    expect(connections).toMatchObject([{ name: 'netatmo', scope: 'B A' }]);
    expect(appliances).toMatchObject([
      { name: 'thermostat', connections: ['netatmo'] },
      { name: 'dashboard', connections: ['netatmo'], scope: null, portal: null },
    ]);
  });

  it('a declared appliance can use the own connection of another one, also of one that is declared after it', async () => {
    const { appliances, connections } = await load(
      appliance('dashboard', 'connection = "thermostat"', 'scope = "A"') +
        appliance('thermostat', 'scope = "A"') +
        appliance('clock', 'connection = "thermostat"'),
    );
    expect(connections).toEqual([]);
    expect(appliances).toMatchObject([
      { name: 'dashboard', connections: ['thermostat'] },
      { name: 'thermostat', connections: [], scope: 'A' },
      { name: 'clock', connections: ['thermostat'] },
    ]);
  });
});

describe('an appliance with several connections', () => {
  const both = connection('netatmo') + connection('tado', 'portal = "away"');

  it('names them in a list, also in a variable, and each once', async () => {
    const { appliances } = await load(both + appliance('hass', 'connections = ["netatmo", "tado", "netatmo"]'));
    expect(appliances).toMatchObject([{ name: 'hass', connections: ['netatmo', 'tado'] }]);
    const overridden = await load(both + appliance('hass'), { LATCHKEY_APPLIANCES_HASS_CONNECTIONS: 'tado, netatmo' });
    expect(overridden.appliances).toMatchObject([{ name: 'hass', connections: ['tado', 'netatmo'] }]);
  });

  it.for<[toml: string, key: string, ...says: string[]]>([
    ['connections = []', 'appliances.hass.connections', 'a list of names'],
    ['connections = ["netatmo", "tdo"]', 'appliances.hass.connections', 'found "tdo"'],
    ['connection = "tado"\nconnections = ["netatmo"]', 'appliances.hass.connections', 'remove the other key'],
  ])('%s is an error', async ([toml, key, ...says]) => {
    for (const text of [key, ...says]) await expect(load(both + appliance('hass', toml))).rejects.toThrow(text);
  });
});

describe('errors about connections in the configuration', () => {
  const netatmo = connection('netatmo', 'scope = "A"');
  const isUnknown = 'must be the name of a section [connections.NAME], or of an appliance without a connection';
  it.for<[toml: string, key: string, ...says: string[]]>([
    ['connections = "netatmo"', 'connections', 'found a string', 'a table'],
    ['[connections."My home"]', 'connections', '"My home" is not a valid connection name'],
    ['[connections.netatmo]\nclient_id = "x"', 'connections.netatmo.client_id', 'unknown key', 'scope, portal'],
    [connection('netatmo', 'scope = "Ü"'), 'connections.netatmo.scope', 'the scope "Ü" has a character'],
    [connection('netatmo', 'portal = "gone"'), 'connections.netatmo.portal', 'found "gone"', 'home, away'],
    [netatmo + appliance('clock', 'connection = "netamo"'), 'appliances.clock.connection', isUnknown, '"netamo"'],
    [appliance('clock', 'connection = "clock"'), 'appliances.clock.connection', isUnknown, 'found "clock"'],
    [
      netatmo + appliance('a', 'connection = "netatmo"') + appliance('b', 'connection = "a"'),
      'appliances.b.connection',
      isUnknown,
      'found "a"',
    ],
    [
      netatmo + appliance('clock', 'connection = "netatmo"', 'portal = "away"'),
      'appliances.clock.portal',
      'is "away", and the connection netatmo is at "home"; leave it out',
    ],
    [
      netatmo + appliance('clock', 'connection = "netatmo"', 'scope = "A B"'),
      'appliances.clock.scope',
      'is "A B", and the connection netatmo has "A"; leave it out',
    ],
    [
      netatmo + appliance('netatmo'),
      'appliances.netatmo',
      'has no connection, but there is a section [connections.netatmo]',
      'add connection = "netatmo", or rename one of the two',
    ],
  ])('the configuration %j is rejected with its key, what was found and what to do', async ([toml, key, ...says]) => {
    const line = await errorMessage(toml);
    expect(line.startsWith(`${file}: ${key}: `), line).toBe(true);
    for (const words of says) expect(line).toContain(words);
  });

  it.for<[variable: string, value: string, key: string, says: string]>([
    ['LATCHKEY_CONNECTIONS_HEATING_SCOPE', 'ä', 'connections.heating.scope', 'the scope "ä"'],
    ['LATCHKEY_APPLIANCES_CLOCK_CONNECTION', 'x', 'appliances.clock.connection', 'found "x"'],
  ])('the error about a variable of a connection names it: %s=%s', async ([variable, value, key, says]) => {
    const line = await errorMessage(appliance('clock'), { [variable]: value });
    expect(line.startsWith(`${variable}: ${key}: `), line).toBe(true);
    expect(line).toContain(says);
  });

  it('the usable part of an invalid configuration leaves out only what is wrong', async () => {
    const toml =
      connection('netatmo', 'portal = "gone"') +
      connection('family', 'scope = "A"') +
      appliance('thermostat', 'connection = "netatmo"') +
      appliance('dashboard', 'connection = "family"');
    writeFileSync(file, `${toml}\n${PORTALS}`);
    const { configuration, errors } = await readConfiguration(file, { HOME: folder.path });
    expect(errors).toHaveLength(2);
    expect(configuration).toMatchObject({ connections: [{ name: 'family' }], appliances: [{ name: 'dashboard' }] });
  });
});
