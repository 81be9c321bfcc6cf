import { generateKeyPairSync } from 'node:crypto';
import { chmodSync, mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { hostname } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeEach, describe, expect, it } from 'vitest';
import { type Configuration, loadConfiguration, readConfiguration } from '../../src/configuration/configuration.ts';
import { controlSocketCandidates } from '../../src/configuration/file.ts';
import type { HelperPortalConfiguration } from '../../src/configuration/portals.ts';
import { InvalidKeyFailure } from '../../src/configuration/validation.ts';
import { DEFAULT_POLICY } from '../../src/core/grants/login-end.ts';
import { sha256 } from '../../src/system/secret-hash.ts';
import { root, runCommand } from '../project/checkout.ts';
import { stateFolder } from '../support/state-folder.ts';
import { AS_STRANGER } from '../support/unprivileged.ts';

const SECRET = 'portal-secret-0815';
const WALLBOX_SECRET = 'wallbox-secret-4711';
const WEBHOOK_SECRET = `whsec_${Buffer.alloc(32, 7).toString('base64')}`;
const CLIENT_ID = '0f4b3c52-6a1e-4d9b-9d57-2c8f1e6a7b90';

const folder = stateFolder();
const file = join(folder.path, 'latchkey.toml');
afterAll(() => folder[Symbol.dispose]());

beforeEach(() => {
  write('portal.secret', SECRET);
  write('wallbox.secret', `${WALLBOX_SECRET}\n`);
  write('short.secret', 'x'.repeat(15));
  write('odd.secret', 'sixteen-letters-ü');
  write('open.secret', WALLBOX_SECRET, 0o644);
  write('webhook.secret', `${WEBHOOK_SECRET}\n`);
  write('private.json', JSON.stringify({ keys: [{ kty: 'EC', crv: 'P-256', x: 'x', y: 'y', d: 'd' }] }));
});

function write(name: string, content: string, mode = 0o600): void {
  writeFileSync(join(folder.path, name), content);
  chmodSync(join(folder.path, name), mode);
}

/** The first portal, which is of the kind `helper`. */
function helperOf({ portals: [first] }: Configuration): HelperPortalConfiguration {
  if (first?.type !== 'helper') throw new Error(`there is no helper portal: ${first?.type}`);
  return first;
}

/** A valid `[portals.home]` with these keys changed; null removes a key. */
function portal(changes: Record<string, string | null> = {}): string {
  const keys = {
    base_url: '"https://api.portal.example"',
    frontend_url: '"https://portal.example"',
    client_id: `"${CLIENT_ID}"`,
    client_secret_file: '"portal.secret"',
    ...changes,
  };
  const lines = Object.entries(keys).filter(([, value]) => value !== null);
  return ['[portals.home]', ...lines.map(([key, value]) => `${key} = ${value}`), ''].join('\n');
}

/** A valid configuration with these keys of `[appliances.wallbox]` changed; null removes a key. */
function appliance(changes: Record<string, string | null> = {}, portals = portal()): string {
  const keys = { scope: '"Monitoring"', portal: '"home"', secret_file: '"wallbox.secret"', ...changes };
  const lines = Object.entries(keys).filter(([, value]) => value !== null);
  return [portals, '[appliances.wallbox]', ...lines.map(([key, value]) => `${key} = ${value}`), ''].join('\n');
}

function load(toml: string, env: NodeJS.ProcessEnv = {}): Promise<Configuration> {
  writeFileSync(file, toml);
  return loadConfiguration(file, { HOME: folder.path, ...env });
}

/** The configuration without its invalid keys, these keys, and the error message for each of them. */
async function readInvalid(toml: string, env: NodeJS.ProcessEnv = {}) {
  writeFileSync(file, toml);
  const { configuration, errors: faults } = await readConfiguration(file, { HOME: folder.path, ...env });
  const keys = faults.map((fault) => (fault instanceof InvalidKeyFailure ? fault.key : 'the file'));
  return { configuration, keys, lines: faults.map(({ message }) => message) };
}

/** The error message, one line, for an invalid configuration. */
async function errorMessage(toml: string, env: NodeJS.ProcessEnv = {}): Promise<string> {
  const failure: unknown = await load(toml, env).then(
    () => null,
    (error: unknown) => error,
  );
  expect(failure).toMatchObject({ name: 'Failure', code: 'config_invalid' });
  const { message } = failure as Error;
  expect(message).not.toContain('\n');
  return message;
}

describe('errors of the configuration file', () => {
  it.for<[toml: string, key: string, ...says: string[]]>([
    ['hub.colour = "x"', 'hub.colour', 'unknown key; allowed keys: name, state_dir, '],
    ['[lann]', 'lann', 'unknown key (did you mean lan?)'],
    [
      portal({ client_secret: `"${SECRET}"` }),
      'portals.home.client_secret',
      'unknown key (did you mean client_secret_file? It names',
      '/etc/latchkey/credentials',
    ],
    [appliance({ secret: `"${SECRET}"` }), 'appliances.wallbox.secret', 'unknown key (did you mean secret_file?'],
    ['[lights]', 'lights', 'unknown key; allowed keys: hub, store, lan, portals, pairing, connections, appliances'],
    ['pairing.lifetime = "2d"', 'pairing.lifetime', 'found "2d"', 'from "1m" to "24h"'],
    [portal({ scope: '"A"' }), 'portals.home.scope', 'base_url, frontend_url, client_id, client_secret_file'],
    ['hub = "Cellar"', 'hub', 'found a string', 'a table'],
    ['hub.name = ""', 'hub.name', 'found ""', '1 to 63 bytes'],
    ['lan.http_port = "8480"', 'lan.http_port', 'found "8480"', '0 to 65535'],
    ['lan.https_port = 84.5', 'lan.https_port', 'found 84.5', '0 to 65535'],
    ['lan.http_port = 8443', 'lan.http_port', 'port 8443 is also lan.https_port; choose another port'],
    ['lan.listen = "0.0.0.0"', 'lan.listen', 'found "0.0.0.0"', 'a list of IP addresses'],
    ['lan.mdns = "yes"', 'lan.mdns', 'found "yes"', 'true or false'],
    [portal({ base_url: null }), 'portals.home.base_url', 'is missing'],
    [portal({ base_url: '"https://api.portal.example/v1"' }), 'portals.home.base_url', 'without a path'],
    [portal({ client_id: '"heater"' }), 'portals.home.client_id', 'found "heater"', 'a UUID'],
    [portal({ client_id: `"${CLIENT_ID}0"` }), 'portals.home.client_id', 'found "0f4b…" (37 characters)', 'a UUID'],
    [portal({ retry_lost_answer: '"never"' }), 'portals.home.retry_lost_answer', 'found "never"', '"early" or "late"'],
    ...['http://portal.example/revoke', 'https://a@portal.example/'].map((url): [string, string, ...string[]] => [
      portal({ revocation_endpoint: JSON.stringify(url) }),
      'portals.home.revocation_endpoint',
      'must be an https URL such as "https://portal.example/oauth2/revoke"',
      'http only for a loopback address',
      `(found ${JSON.stringify(url.replace('a@', '…@'))})`,
    ]),
    [portal({ revocation_endpoint: '"https://portal.example/#a"' }), 'portals.home.revocation_endpoint', 'without "#"'],
    ...['https://auth.portal.example/revoke?t=1', 'https://portal.example:8443/r', 'http://127.0.0.1:1/r'].map(
      (url): [string, string, ...string[]] => [
        portal({ revocation_endpoint: JSON.stringify(url) }),
        'portals.home.revocation_endpoint',
        `must be on the origin of base_url or frontend_url (found "${new URL(url).origin}")`,
      ],
    ),
    ...['59m', '3651d', '7 days'].flatMap((text) =>
      ['login_lifetime', 'idle_lifetime'].map((key): [string, string, ...string[]] => [
        portal({ [key]: JSON.stringify(text) }),
        `portals.home.${key}`,
        `must be a duration from "1h" to "3650d", such as "7d" (found ${JSON.stringify(text)})`,
      ]),
    ),
    [portal({ refresh_ends_access_token: '"true"' }), 'portals.home.refresh_ends_access_token', 'true or false'],
    [portal({ ca_file: '"no-ca.pem"' }), 'portals.home.ca_file', `${folder.path}/no-ca.pem does not exist`],
    ['metrics.listen = "9480"', 'metrics.listen', 'found "9480"', '"" for none'],
    ['metrics.listen = "127.0.0.1:8443"', 'metrics.listen', 'port 8443 is also lan.https_port; choose another port'],
    ['ingress.listen = "0.0.0.0:8443"', 'ingress.listen', 'port 8443 is also lan.https_port; choose another port'],
    ['ingress.listen = "0.0.0.0:9480"', 'ingress.listen', 'port 9480 is also metrics.listen; choose another port'],
    ['ingress.users = "anna"', 'ingress.users', 'found "anna"'],
    ['ingress.hosts = ["Ha.example:8123"]', 'ingress.hosts', 'without a port, in lower case'],
    [
      'ingress.from = "172.30.32.0/24"',
      'ingress.from',
      'found "172.30.32.0/24"',
      'the IP address of the reverse proxy',
    ],
    ['pairing.lifetime = "25h"', 'pairing.lifetime', 'found "25h"', 'from "1m" to "24h"'],
    ['pairing.poll_interval = "1s"', 'pairing.poll_interval', 'found "1s"', 'from "5s" to "10s"'],
    ['notify.comand = ["x"]', 'notify.comand', 'unknown key (did you mean command?)'],
    ['notify.command = [""]', 'notify.command', 'a program and its arguments'],
    ['notify.command = ["a", 7]', 'notify.command.1', 'a list of strings'],
    ['notify.webhook = "http://notify.example/"', 'notify.webhook', 'http only for a loopback'],
    ['[appliances."Wall Box"]\nsecret_file = "x"', 'appliances', '"Wall Box" is not a valid appliance name'],
    [
      appliance({ name: '"x"' }),
      'appliances.wallbox.name',
      'unknown key',
      'connection, connections, scope, portal, ignore_scope, client_id, secret_file, jwks_file',
    ],
    [appliance({ scope: '"Überwachung"' }), 'appliances.wallbox.scope', 'the scope "Überwachung" has a character'],
    [appliance({ portal: '"away"' }), 'appliances.wallbox.portal', 'found "away"', 'a configured portal: home'],
    [appliance({ client_id: '"wall box"' }), 'appliances.wallbox.client_id', '"wall box" is not a valid client_id'],
    [
      `${appliance()}[appliances.heater]\nclient_id = "wallbox"\nsecret_file = "wallbox.secret"`,
      'appliances.heater.client_id',
      '"wallbox" is also the client_id of wallbox; choose another one',
    ],
    [appliance({ secret_file: null }), 'appliances.wallbox', 'neither secret_file nor jwks_file'],
    [appliance({ jwks_file: '"keys.json"' }), 'appliances.wallbox', 'both secret_file and jwks_file'],
    [
      appliance({ secret_file: '"short.secret"' }),
      'appliances.wallbox.secret_file',
      '16 or more characters (found 15)',
    ],
    [
      appliance({ secret_file: '"odd.secret"' }),
      'appliances.wallbox.secret_file',
      'a character that is not printable ASCII',
    ],
    [
      'notify.webhook_secret_file = "wallbox.secret"',
      'notify.webhook_secret_file',
      'must contain "whsec_" and 24 to 64',
    ],
    [appliance({ secret_file: '"open.secret"' }), 'appliances.wallbox.secret_file', 'open to other users (mode 0644)'],
    [
      appliance({ secret_file: null, jwks_file: '"private.json"' }),
      'appliances.wallbox.jwks_file',
      `${folder.path}/private.json key 1 contains the private key`,
    ],
  ])(
    'the configuration %j is rejected with its key, what was found and what is allowed',
    async ([toml, key, ...says]) => {
      const line = await errorMessage(toml);
      expect(line.startsWith(`${file}: ${key}: `), line).toBe(true);
      for (const words of says) expect(line).toContain(words);
      expect(line).not.toContain(SECRET);
    },
  );

  it('a configuration that is not TOML is rejected with the line of the error', async () => {
    expect(await errorMessage('[hub]\nname = "x"\nstate_dir = /var/lib\n')).toMatch(`${file}, line 3: `);
    expect(await errorMessage(`[hub]\nname = "a"\nname = "b"\n`)).toMatch(`${file}, line 3: `);
    expect(await errorMessage(`client_secret = ${SECRET}\n`)).not.toContain(SECRET);
  });

  it('a configuration that can not be read is rejected with the path of its file', async () => {
    const missing = join(folder.path, 'missing.toml');
    await expect(loadConfiguration(missing, {})).rejects.toThrow(`the configuration ${missing} can't be read`);
    await expect(loadConfiguration(folder.path, {})).rejects.toThrow(`the configuration ${folder.path} can't be read`);
    await expect(loadConfiguration(undefined, { LATCHKEY_CONFIG: missing })).rejects.toThrow(missing);
  });
});

describe('the client secret of a portal', () => {
  it.for<[content: string, mode: number, says: string]>([
    [SECRET, 0o640, 'is open to other users (mode 0640); allowed is 0600: chmod 600'],
    ['', 0o600, 'must contain only the secret, on one line'],
    [`${SECRET}\nmore\n`, 0o600, 'must contain only the secret, on one line'],
  ])('a client secret in a file with %j and mode %i is rejected', async ([content, mode, says]) => {
    write('portal.secret', content, mode);
    const line = await errorMessage(portal());
    expect(line).toContain(`${file}: portals.home.client_secret_file: ${folder.path}/portal.secret ${says}`);
    expect(line).not.toContain(SECRET);
  });

  it('the error about an overlong unknown key is one line of limited length', async () => {
    expect((await errorMessage(`${'k'.repeat(100_000)} = 1`)).length).toBeLessThan(1000);
  });

  it('a client secret file must exist and be a file, and its error does not repeat a secret pasted as its name', async () => {
    expect(await errorMessage(portal({ client_secret_file: '"gone.secret"' }))).toContain(
      'names a file that does not exist',
    );
    const pasted = await errorMessage(portal({ client_secret_file: '"pasted-secret-4711"' }));
    expect(pasted).not.toContain('pasted-secret');
    expect(await errorMessage(portal({ client_id: '"pasted-secret-4711"' }))).not.toContain('pasted-secret');
    expect(await errorMessage(portal({ client_id: '["pasted-secret-4711"]' }))).toContain('found a list');
    expect(await errorMessage(portal({ client_secret_file: '"."' }))).toContain(`${folder.path} is not a regular file`);
  });

  it.for([SECRET, `${SECRET}\n`, `${SECRET}\r\n`])(
    'one trailing newline of a client secret is removed: %j',
    async (content) => {
      write('portal.secret', content);
      const configuration = await load(portal());
      expect(helperOf(configuration).clientSecret.reveal()).toBe(SECRET);
      expect(configuration.warnings).toBeUndefined();
    },
  );

  it.for([`${SECRET}\n\n`, ` ${SECRET}\t\r\n`, `\ufeff${SECRET}`, `\u00a0${SECRET}\u00a0\n`, `\u200b${SECRET}\u2060`])(
    'white space around a pasted client secret, client ID or address is removed, and the key is named: %j',
    async (content) => {
      write('portal.secret', content);
      const pasted = (value: string) => JSON.stringify(content.replace(SECRET, value).replace(/\r/, ''));
      const configuration = await load(
        portal({ client_id: pasted(CLIENT_ID), base_url: pasted('https://api.portal.example') }),
      );
      expect(helperOf(configuration)).toMatchObject({ clientId: CLIENT_ID, baseUrl: 'https://api.portal.example' });
      expect(helperOf(configuration).clientSecret.reveal()).toBe(SECRET);
      const keys = ['base_url', 'client_id', 'client_secret_file'];
      expect(configuration.warnings?.toSorted()).toEqual(
        keys.map(
          (key) =>
            `${file}: portals.home.${key}: there is white space around the value, which the hub ignores: remove it`,
        ),
      );
    },
  );

  it('white space that may be meant stays, and so does that around a key in PEM', async () => {
    const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
    const pem = privateKey.export({ type: 'pkcs8', format: 'pem' });
    const cloud = (key: string) => {
      write('client.pem', key);
      const [header, endpoint] = ['X-Api-Key = " a key "', 'https://portal.example/'];
      return load(
        [
          '[portals.cloud]',
          'type = "oauth2"',
          `token_endpoint = "${endpoint}"`,
          `authorization_endpoint = "${endpoint}"`,
        ]
          .concat('client_id = "a hub"', 'client_key_file = "client.pem"', 'scope_separator = " "')
          .concat('authorization_params = { a = " b " }', `headers = { ${header} }`)
          .join('\n'),
      );
    };
    const { portals, warnings } = await cloud(`${pem}\n\n`);
    const [portal] = portals;
    if (portal?.type !== 'oauth2') throw new Error('it is no OAuth 2.0 portal');
    const { clientId, scopeSeparator, authorizationParams, headers } = portal.settings;
    expect({ clientId, scopeSeparator, authorizationParams }).toEqual({
      clientId: 'a hub',
      scopeSeparator: ' ',
      authorizationParams: { a: ' b ' },
    });
    expect(headers['X-Api-Key']?.reveal()).toBe('a key');
    expect(warnings).toEqual([expect.stringContaining('portals.cloud.headers.X-Api-Key: there is white space')]);
    expect((await cloud(`\ufeff${pem}`)).warnings).toContainEqual(
      expect.stringContaining('portals.cloud.client_key_file'),
    );
  });

  it('a client secret can be a systemd credential of any mode, and another name means a file', async () => {
    const credentials = join(folder.path, 'credentials');
    mkdirSync(credentials, { recursive: true });
    write('credentials/portal-home', `from-systemd\n`, 0o444);
    const env = { CREDENTIALS_DIRECTORY: credentials };
    const read = async (name: string) => {
      const home = helperOf(await load(portal({ client_secret_file: `"${name}"` }), env));
      return [home.clientSecret.reveal(), home.appliedBy];
    };
    expect(await read('portal-home')).toEqual(['from-systemd', 'service_restart']);
    expect(await read('portal.secret')).toEqual([SECRET, 'reload']);
    rmSync(join(credentials, 'portal-home'));
    write('credentials/portal-home', '');
    expect(await errorMessage(portal({ client_secret_file: '"portal-home"' }), env)).toContain('one line');
  });

  it.for<[name: string, says: string]>([
    ['portal.secret', 'portal.secret is open to other users (mode 0644): put the file'],
    ['/etc/latchkey/no/secret', 'names neither a credential of this service nor an existing file: put the file'],
  ])('the error about a secret under systemd asks for a credential, and not for %s', async ([name, says]) => {
    write('portal.secret', SECRET, 0o644);
    const env = { CREDENTIALS_DIRECTORY: join(folder.path, 'credentials') };
    const line = await errorMessage(portal({ client_secret_file: `"${name}"` }), env);
    expect(line).toContain(`${says} into /etc/latchkey/credentials, give only its file name here`);
    expect(line).not.toContain('chmod');
  });

  it.for<[where: string, toml: string, env?: NodeJS.ProcessEnv]>([
    ['inline', portal({ client_secret: `"${SECRET}"` })],
    ['at the top', `client_secret = "${SECRET}"`],
    ['in the address', portal({ base_url: `"https://user:${SECRET}@api.portal.example"` })],
    ['in the address for revocations', portal({ revocation_endpoint: `"https://user:${SECRET}@portal.example/"` })],
    ['in the query of a foreign address', portal({ revocation_endpoint: `"https://a.example/?secret=${SECRET}"` })],
    ['in the address, with a slash', portal({ base_url: `"https://user:${SECRET}/x@api.portal.example"` })],
    ['for an appliance, inline', `${portal()}[appliances.wallbox]\nsecret = "${SECRET}"`],
    ['for an appliance, in place of its file', appliance({ secret_file: `"${SECRET}"` })],
    ['in the address of a webhook', `notify.webhook = "http://notify.example/${SECRET}"`],
    ['in a command', `notify.command = "curl -H ${SECRET}"`],
    ['in an argument', `notify.command = ["curl", ["${SECRET}"]]`],
    ['in place of the file of a database', `store.postgres_file = "postgresql://u:${SECRET}@db.example/n"`],
    ['in the environment', portal(), { LATCHKEY_PORTALS_HOME_CLIENT_SECRET: SECRET }],
  ])('the error about a secret in the wrong place does not repeat it: %s', async ([, toml, env]) => {
    expect(await errorMessage(toml, env)).not.toContain(SECRET);
    expect((await readInvalid(toml, env)).lines.join('\n')).not.toContain(SECRET);
  });
});

describe('the usable part of an invalid configuration', () => {
  const other = portal().replace('home', 'other');
  it.for<[toml: string, keys: string[], read: object]>([
    [
      `lan.https_port = "x"\nlan.mdns = false\n${portal()}`,
      ['lan.https_port'],
      { lan: { httpsPort: 8443, mdns: false }, portals: [{ name: 'home' }] },
    ],
    [
      portal({ client_secret_file: '"gone"', ca_file: '"gone"', retry_lost_answer: '"never"' }),
      ['portals.home.retry_lost_answer', 'portals.home.ca_file', 'portals.home.client_secret_file'],
      { portals: [{ baseUrl: 'https://api.portal.example', ca: [], policy: { retryLostAnswer: 'early' } }] },
    ],
    [
      portal({ client_id: null, clientid: `"${CLIENT_ID}"` }) + other,
      ['portals.home.clientid', 'portals.home.client_id'],
      { portals: [{ name: 'other' }] },
    ],
    [
      `${appliance({}, portal({ base_url: null }))}[appliances.heater]\nsecret_file = "gone"`,
      ['portals.home.base_url', 'appliances.heater.secret_file'],
      { portals: [], appliances: [{ name: 'wallbox', portal: 'home' }] },
    ],
    ['hub.name = "x"\nlan.mdns = no', ['the file'], { name: hostname(), lan: { mdns: true } }],
  ])('the doctor can use the valid part of %j, and each wrong key is named once', async ([toml, keys, read]) => {
    const { configuration, keys: found, lines } = await readInvalid(toml);
    expect(found.toSorted(), lines.join('\n')).toEqual(keys.toSorted());
    expect(configuration).toMatchObject(read);
    expect(await errorMessage(toml)).toBe(lines[0]);
  });
});

describe('environment variables of the configuration', () => {
  it('environment variables override single keys with the type of the key', async () => {
    const configuration = await load(`[hub]\nname = "File"\n[lan]\nhttp_port = 1\nmdns = false\n${portal()}`, {
      LATCHKEY_HUB_NAME: 'true',
      LATCHKEY_LAN_HTTPS_PORT: '9443',
      LATCHKEY_LAN_ADDRESS: '10',
      LATCHKEY_LAN_LISTEN: '127.0.0.1, ::1',
      LATCHKEY_PAIRING_ON_START: 'true',
      LATCHKEY_PAIRING_POLL_INTERVAL: '7s',
      LATCHKEY_PORTALS_HOME_BASE_URL: 'https://other.portal.example',
      LATCHKEY_PORTALS_HOME_LOGIN_LIFETIME: '7d',
      LATCHKEY_PORTALS_HOME_REFRESH_ENDS_ACCESS_TOKEN: 'true',
      LATCHKEY_APPLIANCES_HEAT_PUMP_SCOPE: 'Monitoring',
      LATCHKEY_APPLIANCES_HEAT_PUMP_SECRET_FILE: 'wallbox.secret',
      LATCHKEY_TEST_LOGS: 'not a key of the configuration',
    });
    expect(configuration).toMatchObject({
      name: 'true',
      lan: { httpPort: 1, httpsPort: 9443, mdns: false, address: '10', listen: ['127.0.0.1', '::1'] },
      pairing: { onStart: true, pollInterval: 7000 },
      appliances: [{ name: 'heat-pump', scope: 'Monitoring', portal: null }],
      portals: [
        {
          name: 'home',
          baseUrl: 'https://other.portal.example',
          frontendUrl: 'https://portal.example',
          policy: { refreshEndsAccessToken: true, loginLifetime: 7 * 86_400_000 },
        },
      ],
    });
  });

  it('notify.command and notify.webhook come from the file or the environment, with a comma between arguments, and the secret from its file', async () => {
    const { notify } = await load('notify.command = ["./tell", "-v"]\nnotify.webhook = "http://127.0.0.1:1/a?b"', {});
    expect(notify.command).toEqual([`${folder.path}/tell`, '-v']);
    expect(notify.webhook?.reveal()).toBe('http://127.0.0.1:1/a?b');
    const env = { LATCHKEY_NOTIFY_COMMAND: 'tell, me', LATCHKEY_NOTIFY_WEBHOOK: 'https://u:p@notify.example/x' };
    const overridden = (await load('notify.command = ["./tell"]', env)).notify;
    expect(overridden.command).toEqual(['tell', 'me']);
    expect(overridden.webhook?.reveal()).toBe('https://u:p@notify.example/x');
    const signed = (await load('notify.webhook_secret_file = "webhook.secret"', {})).notify;
    expect(signed.webhookSecret?.reveal()).toBe(WEBHOOK_SECRET);
    const none = { command: null, webhook: null, webhookSecret: null, language: 'en' };
    expect((await load('', {})).notify).toEqual(none);
  });

  it('environment variables can define a portal', async () => {
    const env = {
      LATCHKEY_PORTALS_MY_HOME_BASE_URL: 'https://api.portal.example',
      LATCHKEY_PORTALS_MY_HOME_FRONTEND_URL: 'https://portal.example',
      LATCHKEY_PORTALS_MY_HOME_CLIENT_ID: CLIENT_ID,
      LATCHKEY_PORTALS_MY_HOME_CLIENT_SECRET_FILE: 'portal.secret',
    };
    expect((await load('', env)).portals).toMatchObject([{ name: 'my_home', clientId: CLIENT_ID }]);
  });

  it.for<[variable: string, value: string, key: string, says: string]>([
    ['LATCHKEY_LAN_HTTPS_PORT', 'https', 'lan.https_port', 'found "https"'],
    ['LATCHKEY_LAN_MDNS', '1', 'lan.mdns', 'must be true or false (found "1")'],
    ['LATCHKEY_LAN_LISTEN', '0.0.0.0,eth0', 'lan.listen.1', 'found "eth0"'],
    ['LATCHKEY_LAN_PORT', '80', 'lan.port', 'unknown key'],
    ['LATCHKEY_PORTALS_HOME_CLIENT_SECRET_FILE', 'gone', 'portals.home.client_secret_file', 'does not exist'],
    [
      'LATCHKEY_APPLIANCES_EV_NOPE',
      'x',
      'appliances.ev.nope',
      'unknown key; allowed keys: connection, connections, scope, portal, ignore_scope, client_id, secret_file, jwks_file',
    ],
  ])('the error about an invalid variable names it: %s=%s', async ([variable, value, key, says]) => {
    const line = await errorMessage(portal(), { [variable]: value });
    expect(line.startsWith(`${variable}: ${key}: `), line).toBe(true);
    expect(line).toContain(says);
  });
});

describe('the address of the metrics', () => {
  it.each([
    ['127.0.0.1:0', { host: '127.0.0.1', port: 0 }],
    ['', null],
  ])('metrics.listen can be %j, in the file or the environment', async (text, listen) => {
    expect((await load(`metrics.listen = ${JSON.stringify(text)}`)).metrics).toEqual(listen);
    expect((await load('', { LATCHKEY_METRICS_LISTEN: text })).metrics).toEqual(listen);
  });
});

describe('the reverse proxy', () => {
  it('ingress.listen can be set in the file or the environment, and ingress.from has the default of Home Assistant', async () => {
    const ingress = { host: '0.0.0.0', port: 8099, from: '172.30.32.2', users: [], hosts: [] };
    expect((await load('ingress.listen = "0.0.0.0:8099"')).ingress).toEqual(ingress);
    expect((await load('', { LATCHKEY_INGRESS_LISTEN: '0.0.0.0:8099' })).ingress).toEqual(ingress);
    const env = { LATCHKEY_INGRESS_LISTEN: '[::1]:0', LATCHKEY_INGRESS_FROM: '::1' };
    expect((await load('', env)).ingress).toEqual({ host: '::1', port: 0, from: '::1', users: [], hosts: [] });
    const limits = 'ingress.listen = "0.0.0.0:8099"\ningress.users = ["anna"]\ningress.hosts = ["ha.example"]';
    expect((await load(limits)).ingress).toEqual({ ...ingress, users: ['anna'], hosts: ['ha.example'] });
    expect((await load('ingress.listen = ""\ningress.from = "10.0.0.2"')).ingress).toBeNull();
  });
});

describe('the defaults of the configuration', () => {
  it('every omitted key has a default', async () => {
    expect(await load('')).toEqual({
      file,
      name: hostname(),
      stateDirectory: expect.stringMatching(/\/\.local\/state\/latchkey$/),
      controlSocket: expect.stringMatching(/\/\.local\/state\/latchkey\/control\.sock$/),
      site: null,
      lan: {
        httpPort: 8480,
        httpsPort: 8443,
        address: 'auto',
        listen: ['0.0.0.0', '::'],
        mdns: true,
        certificate: null,
      },
      portals: [],
      connections: [],
      appliances: [],
      pairing: { lifetime: 900_000, pollInterval: 5000, onStart: false },
      notify: { command: null, webhook: null, webhookSecret: null, language: 'en' },
      metrics: { host: '127.0.0.1', port: 9480 },
      ingress: null,
      local: null,
      credentialsDirectory: undefined,
    });
    expect((await load(portal())).portals).toMatchObject([
      {
        name: 'home',
        ca: [],
        redirect: 'auto',
        revocationEndpoint: null,
        policy: DEFAULT_POLICY,
      },
    ]);
  });

  it('directories of systemd or XDG take precedence over the default directories', async () => {
    const directories = async (env: NodeJS.ProcessEnv) => {
      const { stateDirectory, controlSocket } = await load('', env);
      return [stateDirectory, controlSocket];
    };
    const systemd = { STATE_DIRECTORY: '/var/lib/latchkey:/var/lib/more', RUNTIME_DIRECTORY: '/run/latchkey' };
    expect(await directories(systemd)).toEqual(['/var/lib/latchkey', '/run/latchkey/control.sock']);
    const xdg = { XDG_STATE_HOME: '/xdg' };
    expect(await directories(xdg)).toEqual(['/xdg/latchkey', '/xdg/latchkey/control.sock']);
    expect((await load('hub.state_dir = "/own"', { ...systemd, ...xdg })).stateDirectory).toBe('/own');
    expect((await load('hub.control_socket = "/own.sock"', systemd)).controlSocket).toBe('/own.sock');
  });

  it.skipIf(process.getuid?.() !== 0)(
    'a user without a name and a home directory has a default directory, too',
    async () => {
      const script = 'console.log((await import(process.argv[1])).defaultStateDirectory({}))';
      const args = ['--input-type=module', '-e', script, join(root, 'src/configuration/file.ts')];
      const { stdout, stderr } = await runCommand('/usr/bin/env', [
        '-u',
        'HOME',
        ...AS_STRANGER,
        process.execPath,
        ...args,
      ]);
      expect({ stdout, stderr }).toEqual({ stdout: '/.local/state/latchkey\n', stderr: '' });
    },
  );
});

describe('a declared appliance', () => {
  it('a declared appliance defaults to its name as client_id, the default portal and no scope', async () => {
    const { appliances } = await load(`${portal()}[appliances.wallbox]\nsecret_file = "wallbox.secret"`);
    const credentials = { kind: 'secret', hash: sha256(WALLBOX_SECRET) };
    expect(appliances).toEqual([
      { name: 'wallbox', clientId: 'wallbox', connections: [], scope: null, portal: null, credentials },
    ]);
  });

  it('a declared appliance can have all its keys, and its secret from a systemd credential', async () => {
    mkdirSync(join(folder.path, 'credentials'), { recursive: true });
    write('credentials/wallbox', `${WALLBOX_SECRET}\n`, 0o444);
    const env = { CREDENTIALS_DIRECTORY: join(folder.path, 'credentials') };
    const toml = appliance({ scope: '" B  A "', client_id: '"Box.1"', secret_file: '"wallbox"' });
    const credentials = { kind: 'secret', hash: sha256(WALLBOX_SECRET) };
    expect((await load(toml, env)).appliances).toEqual([
      { name: 'wallbox', clientId: 'Box.1', connections: [], scope: 'B A', portal: 'home', credentials },
    ]);
  });

  it('a declared appliance can have public keys instead of a secret', async () => {
    const key = generateKeyPairSync('ed25519').publicKey.export({ format: 'jwk' });
    write('keys.json', JSON.stringify({ keys: [key] }), 0o644);
    const { appliances } = await load(appliance({ secret_file: null, jwks_file: '"keys.json"' }));
    expect(appliances[0]?.credentials).toEqual({ kind: 'keys', keys: [key] });
  });
});

it('the lifetimes of a login can be an hour to ten years', async () => {
  const keys = { login_lifetime: '"1h"', idle_lifetime: '"3650d"', refresh_ends_access_token: 'false' };
  expect((await load(portal(keys))).portals).toMatchObject([
    { policy: { loginLifetime: 3_600_000, idleLifetime: 3650 * 86_400_000, refreshEndsAccessToken: false } },
  ]);
});

it('a portal can be reached through a proxy, and its access tokens can have a lifetime', async () => {
  const keys = { proxy: '"http://proxy.example:3128/"', token_lifetime: '"10m"' };
  expect((await load(portal(keys))).portals).toMatchObject([
    { proxy: 'http://proxy.example:3128', tokenLifetime: 600_000 },
  ]);
  expect((await load(portal({}))).portals).toMatchObject([{ proxy: null, tokenLifetime: null }]);
});

it.for(['proxy.example:3128', 'socks5://proxy.example', 'http://me@proxy.example', 'http://proxy.example/path', ''])(
  'the proxy of a portal can not be %j',
  async (proxy) => {
    await expect(load(portal({ proxy: JSON.stringify(proxy) }))).rejects.toThrow(
      /portals\.home\.proxy: must be the http or https URL of a proxy without a path and a user name/,
    );
  },
);

it.for<[endpoint: string, changes: Record<string, string>]>([
  ['https://portal.example/oauth2/revoke', {}],
  ['http://127.0.0.1:8080/revoke', { base_url: '"http://127.0.0.1:8080"' }],
])('the revocation endpoint of a portal can be %s', async ([endpoint, changes]) => {
  const configuration = await load(portal({ ...changes, revocation_endpoint: JSON.stringify(endpoint) }));
  expect(helperOf(configuration).revocationEndpoint).toBe(endpoint);
});

describe('paths and addresses in the configuration', () => {
  it('relative paths are relative to the configuration file, for the daemon and for the command line', async () => {
    mkdirSync(join(folder.path, 'secrets'), { recursive: true });
    write('secrets/home', SECRET);
    const toml = `[hub]\nstate_dir = "state"\ncontrol_socket = "run/hub.sock"\n${portal({ client_secret_file: '"secrets/home"' })}`;
    const configuration = await load(toml);
    expect(configuration).toMatchObject({
      stateDirectory: join(folder.path, 'state'),
      controlSocket: join(folder.path, 'run/hub.sock'),
    });
    expect(helperOf(configuration).clientSecret.reveal()).toBe(SECRET);
    expect(await controlSocketCandidates(file, {})).toEqual([configuration.controlSocket]);
    const other = await load('hub.state_dir = "state"');
    expect(await controlSocketCandidates(file, {})).toEqual([other.controlSocket]);
  });

  it('LATCHKEY_CONFIG names the configuration file, and the option --config overrides it', async () => {
    write('other.toml', 'hub.name = "Other"');
    await load('hub.name = "This"');
    const env = { LATCHKEY_CONFIG: join(folder.path, 'other.toml') };
    expect(await loadConfiguration(undefined, env)).toMatchObject({ name: 'Other', file: env.LATCHKEY_CONFIG });
    expect(await loadConfiguration(file, env)).toMatchObject({ name: 'This', file });
  });

  it('the first portal in the configuration file is the default, and the others keep their order', async () => {
    const { portals } = await load(portal().replace('home', 'zeta') + portal().replace('home', 'alpha'));
    expect(portals.map(({ name }) => name)).toEqual(['zeta', 'alpha']);
  });
});
