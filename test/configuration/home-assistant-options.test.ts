import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { loadConfiguration, readConfiguration } from '../../src/configuration/configuration.ts';
import { controlSocketCandidates } from '../../src/configuration/file.ts';
import { InvalidKeyFailure } from '../../src/configuration/validation.ts';
import { rememberSecrets } from '../support/logs.ts';
import { stateFolder } from '../support/state-folder.ts';

const SECRET = 'a-secret-in-the-options';
const CLIENT_ID = '0f4b3c52-6a1e-4d9b-9d57-2c8f1e6a7b90';
const HOME = {
  name: 'home',
  base_url: 'https://api.portal.example/',
  frontend_url: 'https://portal.example',
  client_id: CLIENT_ID,
  client_secret: SECRET,
};
rememberSecrets([SECRET]);

const folder = stateFolder();
const file = join(folder.path, 'options.json');
afterAll(() => folder[Symbol.dispose]());

/** As the Supervisor writes it. */
function write(options: unknown): string {
  writeFileSync(file, typeof options === 'string' ? options : JSON.stringify(options));
  return file;
}

const environment = (more: NodeJS.ProcessEnv = {}) => ({ HOME: folder.path, LATCHKEY_CONFIG: file, ...more });

function load(options: unknown, env: NodeJS.ProcessEnv = {}) {
  write(options);
  return loadConfiguration(undefined, environment(env));
}

/** The only line for invalid options. */
async function errorMessage(options: unknown, env: NodeJS.ProcessEnv = {}): Promise<string> {
  write(options);
  const { errors } = await readConfiguration(undefined, environment(env));
  expect(errors.map(({ message }) => message)).toHaveLength(1);
  const message = errors[0]?.message ?? '';
  expect(message).not.toContain('\n');
  expect(message).not.toContain(SECRET);
  return message;
}

describe("the options of Home Assistant's app", () => {
  it('the options become the same configuration as a file in TOML', async () => {
    const { lan, name, portals, notify } = await load({
      name: 'Cellar hub',
      address: '192.0.2.7',
      http_port: 8481,
      https_port: 8444,
      notify_webhook: 'http://127.0.0.1:8123/api/webhook/latchkey',
      page_users: ['anna'],
      portals: [HOME, { name: 'tado', preset: 'tado', retry_lost_answer: 'late' }],
    });
    expect({ name, lan, webhook: notify.webhook?.reveal() }).toMatchObject({
      name: 'Cellar hub',
      lan: { address: '192.0.2.7', httpPort: 8481, httpsPort: 8444, mdns: true },
      webhook: 'http://127.0.0.1:8123/api/webhook/latchkey',
    });
    const [home, tado] = portals;
    if (home?.type !== 'helper') throw new Error('the first portal is no helper portal');
    expect(home).toMatchObject({ name: 'home', baseUrl: 'https://api.portal.example', clientId: CLIENT_ID });
    expect(home.clientSecret.reveal()).toBe(SECRET);
    expect(tado).toMatchObject({
      name: 'tado',
      type: 'oauth2',
      preset: { name: 'tado', title: 'tado°' },
      policy: { retryLostAnswer: 'late' },
    });
  });

  it('a portal with an issuer or endpoints is an ordinary OAuth 2.0 server', async () => {
    const { portals } = await load({
      portals: [{ name: 'cloud', issuer: 'https://id.portal.example', client_id: 'hub', client_secret: SECRET }],
    });
    const [cloud] = portals;
    if (cloud?.type !== 'oauth2') throw new Error('the portal is no OAuth 2.0 server');
    expect(cloud.settings).toMatchObject({ issuer: 'https://id.portal.example', clientId: 'hub' });
    expect(cloud.settings.clientSecret?.reveal()).toBe(SECRET);
  });

  it('white space around what people paste into the form is removed, and the option is named', async () => {
    const pasted = { client_id: `\u00a0${CLIENT_ID} `, client_secret: `\ufeff${SECRET}\n`, login: ' ' };
    const { portals, warnings } = await load({
      portals: [{ ...HOME, ...pasted }],
      notify_webhook: ' https://a.example ',
    });
    const [home] = portals;
    if (home?.type !== 'helper') throw new Error('the first portal is no helper portal');
    expect([home.clientId, home.clientSecret.reveal()]).toEqual([CLIENT_ID, SECRET]);
    expect(warnings).toEqual(
      ['notify_webhook', 'portals.home.client_id', 'portals.home.client_secret'].map((option) =>
        expect.stringContaining(`the app's options (${file}): ${option}: there is white space`),
      ),
    );
  });

  it('a client secret in the options is in no file, and takes effect when the app is restarted', async () => {
    const { portals } = await load({ portals: [HOME] });
    expect(portals[0]).toMatchObject({ appliedBy: 'app_restart' });
    expect(portals[0]).not.toHaveProperty('secretFile');
  });

  it('an environment variable overrides an option', async () => {
    const { stateDirectory, lan } = await load(
      { https_port: 8444, portals: [HOME] },
      { LATCHKEY_HUB_STATE_DIR: '/data/latchkey', LATCHKEY_LAN_HTTPS_PORT: '8555' },
    );
    expect({ stateDirectory, port: lan.httpsPort }).toEqual({ stateDirectory: '/data/latchkey', port: 8555 });
  });

  it.each<[options: unknown, message: string | RegExp]>([
    [
      { portals: [{ ...HOME, client_id: 'mine' }] },
      /: portals\.home\.client_id: must be a UUID such as .*\(found "mine"\)/,
    ],
    [{ portals: [{ ...HOME, client_secret: '' }] }, ': portals.home.client_secret: is missing; add it'],
    [{ portals: [{ ...HOME, client_secret: ' \u00a0' }] }, ': portals.home.client_secret: is missing; add it'],
    [{ portals: [{ ...HOME, client_secret: 'a\nb' }] }, ': portals.home.client_secret: must be a text on one line'],
    [
      { portals: [{ name: 'miele', preset: 'miele', client_id: 'x' }] },
      ': portals.miele.client_secret: is missing; this cloud wants a secret',
    ],
    [
      { portals: [{ ...HOME, client_secert: SECRET }] },
      /: portals\.home\.client_secert: unknown option; the options are: name, preset/,
    ],
    [{ portals: [HOME, HOME] }, ': portals.home: two portals have this name'],
    [{ portals: [HOME, { ...HOME, name: '__proto__' }] }, ': portals, entry 2, name: must begin with a letter'],
    [{ portals: [HOME, 'tado'] }, ': portals, entry 2: must be a group of options'],
    [{ portals: [HOME], https_port: 8480 }, ': http_port: port 8480 is also https_port; choose another port'],
    [
      { portals: [HOME], state_dir: '/x' },
      /: state_dir: unknown option; the options are: name, .*put a latchkey\.toml/,
    ],
    [{ portals: [HOME], constructor: 'x' }, /: constructor: unknown option; the options are: name/],
  ])('one line names the invalid option as its user sees it: %j', async (options, message) => {
    const line = await errorMessage(options);
    expect(line.startsWith(`the app's options (${file}): `)).toBe(true);
    expect(line).toEqual(
      typeof message === 'string' ? expect.stringContaining(message) : expect.stringMatching(message),
    );
  });

  it('the variable of a preset is an option of its portal', async () => {
    const nest = { name: 'nest', preset: 'nest', client_id: 'x', client_secret: SECRET };
    expect(await errorMessage({ portals: [nest] })).toContain(': portals.nest.project_id: is missing; it must be ');
    const { portals } = await load({ portals: [{ ...nest, project_id: 'my-project' }] });
    const [cloud] = portals;
    if (cloud?.type !== 'oauth2') throw new Error('the portal is no OAuth 2.0 server');
    expect(cloud.settings.endpoints.authorization).toContain('/my-project/');
  });

  it('an invalid option keeps the name of its key for the doctor', async () => {
    write({ portals: [{ ...HOME, client_id: 'x' }], https_port: 'x' });
    const { errors } = await readConfiguration(undefined, environment());
    const keys = errors.map((error) => error instanceof InvalidKeyFailure && error.key);
    expect(keys.sort()).toEqual(['lan.https_port', 'portals.home.client_id']);
  });

  it.each(['[]', '{"portals": ['])('one line rejects a file that contains no options: %j', async (text) => {
    expect(await errorMessage(text)).toBe(
      `${file} must contain the app's options as a JSON object; a configuration file in TOML must not end with .json`,
    );
  });
});

describe('LATCHKEY_CONFIG with several files', () => {
  it('the first file that exists is the configuration, for the hub and for the command line', async () => {
    mkdirSync(join(folder.path, 'config'), { recursive: true });
    const toml = join(folder.path, 'config/latchkey.toml');
    write({ name: 'from the options', portals: [HOME] });
    const env = environment({ LATCHKEY_CONFIG: `${toml}:${file}`, LATCHKEY_HUB_STATE_DIR: `${folder.path}/state` });
    expect(await loadConfiguration(undefined, env)).toMatchObject({ file, name: 'from the options' });
    expect(await controlSocketCandidates(undefined, env)).toEqual([join(folder.path, 'state/control.sock')]);
    writeFileSync(toml, '[hub]\nname = "from the file"\ncontrol_socket = "own.sock"\n');
    expect(await loadConfiguration(undefined, env)).toMatchObject({ file: toml, name: 'from the file' });
    expect(await controlSocketCandidates(undefined, env)).toEqual([join(folder.path, 'config/own.sock')]);
  });
});
