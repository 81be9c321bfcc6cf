import { existsSync, globSync, readFileSync, symlinkSync } from 'node:fs';
import { createServer } from 'node:http';
import { createServer as createHttpsServer } from 'node:https';
import { dirname, join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { createAuthority, issueLeaf } from '../../../src/system/x509/issuing.ts';
import { readExample } from '../../emulator/examples/guide.ts';
import { ApplianceTestBed } from '../../lan/clients/appliance-test-bed.ts';
import { missingPackages } from '../../lan/clients/programs.ts';
import { root } from '../../project/checkout.ts';
import { eventually } from '../../support/hub-process.ts';
import { rememberSecrets } from '../../support/logs.ts';
import { GO_CACHE } from '../../support/program.ts';

const PAGE = 'docs/appliances.md';
const GO = { GO111MODULE: 'off', GOPATH: '/usr/share/gocode', GOCACHE: GO_CACHE };
const CC = ['-std=c11', '-D_DEFAULT_SOURCE', '-Wall', '-Wextra', '-Werror', '-o', 'example', 'example.c'];
const GREETED = { status: 0, stdout: expect.stringContaining('"user":"demo"') };
const BUILT = { status: 0, stdout: '', stderr: '' };

const noPython = missingPackages('requests-oauthlib').length > 0;
const noAuthlib = missingPackages('Authlib').length > 0;
const noGo = missingPackages('golang.org/x/oauth2').length > 0;
const noJq = !existsSync('/usr/bin/jq');
/** The languages of the examples, and whether their packages are missing. */
const LACKING: Readonly<Record<Language, boolean>> = { sh: false, python: noPython, js: false, go: noGo };
const isHeaderMissing = (...headers: string[]) =>
  !existsSync('/usr/bin/cc') || headers.some((header) => globSync(`/usr/include/{*/,}${header}`).length === 0);

let testBed: ApplianceTestBed;
let otherCa: string;
let hubCa: Awaited<ReturnType<typeof createAuthority>>;
let hubLeaf: { readonly certificate: string; readonly key: string };

type Workspace = ReturnType<ApplianceTestBed['createWorkspace']>;
type Language = 'sh' | 'python' | 'js' | 'go';

/** Runs an example. A program in Go is compiled first. */
async function run(workspace: Workspace, language: Language, script: string, env: NodeJS.ProcessEnv = {}) {
  if (language !== 'go') return workspace[language](script, env);
  workspace.write('example.go', script);
  expect(await workspace.run('/usr/bin/go', ['build', '-o', 'example', 'example.go'], GO)).toEqual(BUILT);
  return workspace.run('./example', [], env);
}

beforeAll(async () => {
  testBed = await ApplianceTestBed.start();
  otherCa = (await createAuthority()).certificate;
  hubCa = await createAuthority();
  hubLeaf = await issueLeaf(hubCa, { names: [], addresses: ['127.0.0.1'], now: Date.now() });
});
afterAll(() => testBed?.[Symbol.asyncDispose]());

test('no example of the page for appliance developers turns certificate verification off', () => {
  expect(readFileSync(join(root, PAGE), 'utf8')).not.toMatch(
    /verify ?= ?False|--insecure|curl [^\n]*-\w*k\b|rejectUnauthorized|InsecureSkipVerify|VERIFYPEER|VERIFYHOST|VERIFY_NONE|NODE_TLS/,
  );
});

test.skipIf(noPython || noGo || isHeaderMissing('curl/curl.h', 'cjson/cJSON.h'))(
  'the commands of the page take an example in each of five languages out of it, and run it',
  async () => {
    using workspace = testBed.createWorkspace(null);
    symlinkSync(join(root, 'docs'), join(dirname(workspace.write('read-me', '')), 'docs'));
    const stove = await testBed.addAppliance('stove');
    // The Python of Debian, whatever else is installed.
    const env = { PATH: `${dirname(process.execPath)}:/usr/bin:/bin`, GOCACHE: GO_CACHE };
    const ran = await workspace.sh(readExample('Run the examples', 'sh', PAGE), { ...stove, ...env });
    expect(ran).toMatchObject({ status: 0, stderr: '' });
    const [fromShell = '', ...others] = ran.stdout.trim().split('\n');
    const fromC = others.pop() ?? '';
    expect(others).toEqual(Array(3).fill(expect.stringContaining('"user":"demo"')));
    for (const token of [JSON.parse(fromShell).access_token, fromC]) expect(await testBed.userOf(token)).toBe('demo');
  },
);

describe.concurrent('the examples that trust the CA of a hub', () => {
  test.for(Object.entries(LACKING))(
    'the %s example saves only the CA that matches the pin',
    async ([name, lacking], { skip }) => {
      skip(lacking, 'without its packages');
      using workspace = testBed.createWorkspace(null);
      const language = name as Language;
      const script = readExample('Trust the hub', language, PAGE);
      const start = (env?: NodeJS.ProcessEnv) => run(workspace, language, script, env);
      const file = workspace.write('latchkey-ca.pem', '');
      expect(await start({ PIN: 'bm90IHRoZSBwaW4gb2YgdGhpcyBodWIncyBDQQ' })).toMatchObject({ status: 1 });
      expect(readFileSync(file, 'utf8')).toBe('');
      await using impostor = createServer((_request, response) => response.end(`${testBed.wire.ca}${otherCa}`));
      await new Promise((resolve) => impostor.listen(0, '127.0.0.1', () => resolve(null)));
      const { port } = impostor.address() as { port: number };
      for (const env of [{ HUB_HTTP: `http://127.0.0.1:${port}` }, {}]) {
        expect(await start(env)).toEqual({ status: 0, stdout: '', stderr: '' });
        expect(readFileSync(file, 'utf8').trim()).toBe(testBed.wire.ca.trim());
      }
    },
  );
});

describe.concurrent('the examples of a token for a secret', () => {
  const example = (language: string) => readExample('Get a token with a client secret', language, PAGE);

  test('the curl example gets a token for a secret, and rejects another CA', async () => {
    using workspace = testBed.createWorkspace();
    const heater = await testBed.addAppliance('heater');
    const { stdout } = await workspace.sh(example('sh'), heater);
    expect(await testBed.userOf(JSON.parse(stdout).access_token)).toBe('demo');
    workspace.write('latchkey-ca.pem', otherCa);
    expect(await workspace.sh(example('sh'), heater)).toMatchObject({ status: 60, stdout: '' });
  });

  /** What a program prints that does not trust the hub. */
  const DISTRUST = { python: 'CERTIFICATE_VERIFY_FAILED', js: 'self-signed certificate', go: 'unknown authority' };

  test.for(['python', 'js', 'go'] as const)(
    'the %s example gets a token for a secret, and none as long as it has another CA',
    async (language, { skip }) => {
      skip(LACKING[language], 'without its packages');
      using workspace = testBed.createWorkspace();
      const cooler = await testBed.addAppliance(`cooler-${language}`);
      expect(await run(workspace, language, example(language), cooler)).toMatchObject(GREETED);
      workspace.write('latchkey-ca.pem', otherCa);
      const script = { python: 'python3 -c "$EXAMPLE"', js: 'node example.mjs', go: './example' }[language];
      const env = { ...cooler, EXAMPLE: example(language) };
      expect(await workspace.sh(`timeout 4 ${script}`, env)).toEqual({
        status: 124,
        stdout: '',
        stderr: expect.stringContaining(DISTRUST[language]),
      });
    },
  );

  test.for(['python', 'js', 'go'] as const)(
    'the %s example waits and repeats its request until the hub gives a token, and writes down why',
    async (language, { skip }) => {
      skip(LACKING[language], 'without its packages');
      using workspace = testBed.createWorkspace(hubCa.certificate);
      const { CLIENT_ID = '', CLIENT_SECRET = '' } = await testBed.addAppliance(`cellar-${language}`);
      const { text } = await testBed.wire.tokenFor({ client_id: CLIENT_ID, client_secret: CLIENT_SECRET });
      const refusals = [
        [503, 'temporarily_unavailable', 'the portal rests'],
        [429, 'temporarily_unavailable', 'too many requests'],
        [400, 'invalid_grant', 'must be paired again'],
        [401, 'invalid_client', 'the secret is wrong'],
      ] as const;
      const asked: number[] = [];
      await using hub = createHttpsServer({ key: hubLeaf.key, cert: hubLeaf.certificate }, (request, response) => {
        const json = (status: number, body: string, headers = {}) =>
          response.writeHead(status, { 'content-type': 'application/json', ...headers }).end(body);
        const issuer = `https://${request.headers.host}`;
        if (request.method === 'GET')
          return json(200, JSON.stringify({ issuer, token_endpoint: `${issuer}/oauth/token` }));
        const [status, error, error_description] = refusals[asked.push(performance.now()) - 1] ?? [];
        if (status === undefined) return json(200, text);
        const challenge = status === 401 ? { 'www-authenticate': 'Basic realm="latchkey"' } : {};
        return json(status, JSON.stringify({ error, error_description }), { 'retry-after': '1', ...challenge });
      });
      await new Promise((resolve) => hub.listen(0, '127.0.0.1', () => resolve(null)));
      const { port } = hub.address() as { port: number };
      const env = { CLIENT_ID, CLIENT_SECRET, HUB: 'https://127.0.0.1:1', HUB2: `https://127.0.0.1:${port}` };
      const ended = await run(workspace, language, example(language), env);
      expect(ended).toMatchObject(GREETED);
      for (const [, , why] of refusals) expect(ended.stderr).toContain(why);
      expect(asked).toHaveLength(refusals.length + 1);
      for (const [index, at] of asked.slice(1).entries()) expect(at - (asked[index] ?? 0)).toBeGreaterThanOrEqual(990);
    },
  );

  // golang.org/x/oauth2 keeps the token in the Go example.
  test.for([
    ['python', noPython, 'HUBS.clear()\nprint(ask_cloud("/api/whoami").status_code)\n'],
    ['js', false, "await dispatcher.destroy();\nconsole.log((await askCloud('/api/whoami')).status);\n"],
  ] as const)(
    'the %s example asks the cloud once more without the hub, as long as its token lives',
    async ([language, lacking, more], { skip }) => {
      skip(lacking, 'without its packages');
      using workspace = testBed.createWorkspace();
      const freezer = await testBed.addAppliance(`freezer-${language}`);
      const ended = await run(workspace, language, example(language) + more, freezer);
      expect(ended).toMatchObject({ status: 0, stdout: expect.stringMatching(/"user":"demo".*\n200\n$/) });
    },
  );
});

describe.concurrent('the examples of the device flow', () => {
  const example = (language: string) => readExample('Pair with the device flow', language, PAGE);

  test.skipIf(noPython)('the Python example of the device flow pairs and uses its token', async () => {
    using workspace = testBed.createWorkspace();
    expect(await workspace.python(example('python'), await testBed.addAppliance('pump', false))).toMatchObject(GREETED);
  });

  test('the Node example of the device flow pairs and gets a token', async () => {
    using workspace = testBed.createWorkspace();
    const [before] = readExample('Get a token with a client secret', 'js', PAGE).split('let kept');
    const script = `${before}${example('js')}\nconsole.log(access_token);`;
    const { stdout } = await workspace.js(script, await testBed.addAppliance('inverter', false));
    expect(await testBed.userOf(stdout.trim())).toBe('demo');
  });

  test('the Go example of the device flow pairs and gets a token with a current version of the library', async ({
    skip,
  }) => {
    using workspace = testBed.createWorkspace();
    const { HOME, GOPROXY } = process.env;
    const go = (...args: string[]) =>
      workspace.run('go', args, { HOME, GOPROXY, GOCACHE: GO_CACHE, GOFLAGS: '-mod=mod' });
    workspace.write('go.mod', 'module example\n');
    const got = await go('get', 'golang.org/x/oauth2@v0.38.0').catch(() => ({ status: 1 }));
    skip(got.status !== 0, 'without Go, or without its registry');
    const [before = ''] = readExample('Get a token with a client secret', 'go', PAGE).split('\tsource :=');
    const script = `${before}${example('go')}\tif err != nil {\n\t\tlog.Fatal(err)\n\t}\n\tfmt.Println(token.AccessToken)\n}\n`;
    workspace.write('example.go', script.replace('"errors"', '"errors"\n\t"fmt"').replace(/.*"io"\n/, ''));
    expect(await go('build', '-o', 'example')).toEqual(BUILT);
    const { stdout } = await workspace.run('./example', [], await testBed.addAppliance('roof', false));
    expect(await testBed.userOf(stdout.trim())).toBe('demo');
  });

  test.skipIf(noJq)('the curl example of the device flow pairs and gets a token', async () => {
    using workspace = testBed.createWorkspace();
    const { status, stdout } = await workspace.sh(example('sh'), await testBed.addAppliance('car', false));
    expect(status).toBe(0);
    expect(await testBed.userOf(JSON.parse(stdout).access_token)).toBe('demo');
  });

  test.skipIf(noPython)(
    'the Python example of the device flow ends with a login through the link of an installer',
    async () => {
      using workspace = testBed.createWorkspace();
      // Nobody opens the link of the appliance.
      const script = example('python').replace('"Open', '"Visit');
      const running = workspace.python(script, await testBed.addAppliance('boat', false));
      await eventually(async () => (await testBed.hub.appliance('boat')).state === 'pairing');
      await testBed.hub.pair('boat', testBed.emulator);
      expect(await running).toMatchObject(GREETED);
    },
  );

  test.for([
    ['sh', noJq],
    ['python', noPython],
  ] as const)(
    'the %s example of the device flow shows that the pairing has failed, and stops',
    async ([language, lacking], { skip }) => {
      skip(lacking, 'without its packages');
      using workspace = testBed.createWorkspace();
      const name = `kettle-${language}`;
      // Nobody logs in, because no link is to be opened.
      const script = example(language).replace('"Open', '"Visit');
      const running = workspace[language](script, await testBed.addAppliance(name, false));
      await eventually(async () => (await testBed.hub.appliance(name)).state === 'pairing');
      await testBed.hub.ask((control) => control.request('unpair', { name }));
      const { status, stderr } = await running;
      expect(status).toBe(1);
      expect(stderr).toMatch(/expired_token.*the pairing was cancelled at the hub/);
    },
  );
});

describe.concurrent('the examples of registration', () => {
  const example = (language: string) => readExample('Register the appliance', language, PAGE);

  test('the curl example of registration adds an appliance with an invite', async () => {
    using workspace = testBed.createWorkspace();
    const { stdout } = await workspace.sh(example('sh'), { INVITE: await testBed.invite('boiler') });
    const output = JSON.parse(stdout) as Record<string, string>;
    rememberSecrets([output['client_secret'] ?? '']);
    expect(output).toMatchObject({ client_name: 'boiler', ca_fingerprint: testBed.pin });
    expect(await testBed.hub.appliance('boiler')).toMatchObject({ client_id: output['client_id'], state: 'unpaired' });
  });

  test('the Node example of registration gets from the pin and the invite to an access token', async () => {
    using workspace = testBed.createWorkspace(null);
    const script = `${example('js')}\nconsole.log(JSON.stringify({ client_secret, client_id, access_token, expires_in }));`;
    const { status, stdout, stderr } = await workspace.js(script, { INVITE: await testBed.invite('wallbox') });
    expect({ status, stderr }).toEqual({ status: 0, stderr: '' });
    const output = JSON.parse(stdout) as Record<string, string>;
    rememberSecrets([output['client_secret'] ?? '']);
    expect(await testBed.userOf(output['access_token'])).toBe('demo');
    expect(await testBed.hub.appliance('wallbox')).toMatchObject({ client_id: output['client_id'], state: 'active' });
  });
});

describe.concurrent('the examples with a key instead of a secret', () => {
  const example = (language: string) => readExample('Use a key instead of a secret', language, PAGE);

  test('the Node example gets a token with a key that the shell example created and registered', async () => {
    using workspace = testBed.createWorkspace();
    const registered = await workspace.sh(example('sh'), { INVITE: await testBed.invite('solar') });
    expect(registered).toMatchObject({ status: 0, stderr: '' });
    const { client_id, client_secret } = JSON.parse(registered.stdout) as Record<string, string>;
    expect(client_secret).toBeUndefined();
    await testBed.hub.pair('solar', testBed.emulator);
    const env = { CLIENT_ID: client_id };
    const { status, stdout, stderr } = await workspace.js(`${example('js')}\nconsole.log(access_token);`, env);
    expect({ status, stderr }).toEqual({ status: 0, stderr: '' });
    expect(await testBed.userOf(stdout.trim())).toBe('demo');
  });

  test.skipIf(noAuthlib)('the Python example gets a token with a registered key', async () => {
    using workspace = testBed.createWorkspace();
    const { pem, env } = await testBed.addApplianceWithKey('battery');
    workspace.write('key.pem', pem);
    expect(await workspace.python(example('python'), env)).toMatchObject(GREETED);
  });
});

describe.concurrent('the examples for small devices', () => {
  test.skipIf(isHeaderMissing('curl/curl.h', 'cjson/cJSON.h'))(
    'the C example with libcurl pairs once, gets a token on each run, and rejects another CA',
    async () => {
      using workspace = testBed.createWorkspace();
      workspace.write('example.c', readExample('Small devices', 'c', PAGE));
      expect(await workspace.run('/usr/bin/cc', [...CC, '-lcurl', '-lcjson'])).toEqual(BUILT);
      const lamp = await testBed.addAppliance('lamp', false);
      for (const time of ['first', 'second']) {
        const { stdout, ...ended } = await workspace.run('./example', [], lamp);
        expect({ time, ...ended }).toEqual({ time, status: 0, stderr: '' });
        expect(await testBed.userOf(stdout.trim())).toBe('demo');
      }
      workspace.write('latchkey-ca.pem', otherCa);
      expect(await workspace.run('./example', [], lamp)).toMatchObject({
        status: 1,
        stderr: expect.stringMatching(/SSL/),
      });
    },
  );

  test.skipIf(isHeaderMissing('mbedtls/ssl.h'))(
    'the C example with mbedTLS gets a token, and rejects another host name and another CA',
    async () => {
      using workspace = testBed.createWorkspace(null);
      workspace.write('example.c', readExample('Very small devices', 'c', PAGE));
      expect(await workspace.run('/usr/bin/cc', [...CC, '-lmbedtls', '-lmbedx509', '-lmbedcrypto'])).toEqual(BUILT);
      const address = { HUB_ADDRESS: '127.0.0.1', HUB_PORT: String(testBed.hub.httpsPort) };
      const name = `${(await testBed.hub.status()).hub.id}.local`;
      const sensor = { ...(await testBed.addAppliance('sensor')), ...address, HUB_NAME: name };
      workspace.write('ca.pem', testBed.wire.ca);
      const { stdout } = await workspace.run('./example', [], sensor);
      expect(await testBed.userOf(JSON.parse(stdout).access_token)).toBe('demo');
      const refused = { status: 1, stdout: '', stderr: expect.stringContaining('no handshake') };
      expect(await workspace.run('./example', [], { ...sensor, HUB_NAME: 'other.local' })).toEqual(refused);
      const wrong = { status: 1, stdout: '', stderr: expect.stringMatching(/401.*"invalid_client"/s) };
      expect(await workspace.run('./example', [], { ...sensor, CLIENT_SECRET: 'wrong' })).toEqual(wrong);
      for (const ca of [otherCa, testBed.wire.ca + otherCa]) {
        workspace.write('ca.pem', ca);
        const foreign = { status: 2, stdout: '', stderr: expect.stringContaining('not the CA of our hub') };
        expect(await workspace.run('./example', [], sensor)).toEqual(foreign);
      }
    },
  );
});

describe('the examples for a token that the cloud API rejects', () => {
  const example = (language: string) => readExample('When the cloud returns 401', language, PAGE);

  test.for(['python', 'js', 'go'] as const)(
    'the %s example gets a valid token from the second address after the cloud API has rejected its token',
    async (language, { skip }) => {
      skip(LACKING[language], 'without its packages');
      using workspace = testBed.createWorkspace();
      const fridge = await testBed.addAppliance(`fridge-${language}`);
      for (const { id } of testBed.emulator.grants()) testBed.emulator.revoke(id, 'access_tokens');
      const script = readExample('Get a token with a client secret', language, PAGE);
      const addresses = { HUB: 'https://127.0.0.1:1', HUB2: `https://127.0.0.1:${testBed.hub.httpsPort}` };
      expect(await run(workspace, language, script, { ...fridge, ...addresses })).toMatchObject(GREETED);
    },
  );

  test('the curl example reports a rejected token, and the next token is a new, valid one', async () => {
    using workspace = testBed.createWorkspace();
    const oven = await testBed.addAppliance('oven');
    const token = async () => {
      const { stdout } = await workspace.sh(readExample('Get a token with a client secret', 'sh', PAGE), oven);
      return String(JSON.parse(stdout).access_token);
    };
    const refused = await token();
    expect(await workspace.sh(example('sh'), { ...oven, REFUSED: refused })).toMatchObject({ status: 0, stderr: '' });
    const fresh = await token();
    expect(fresh).not.toBe(refused);
    expect(await testBed.userOf(fresh)).toBe('demo');
  });
});
