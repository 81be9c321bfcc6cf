import { existsSync, globSync, readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { createAuthority } from '../../src/system/x509/issuing.ts';
import { readExample } from '../emulator/examples/guide.ts';
import { root } from '../project/checkout.ts';
import { eventually } from '../support/hub-process.ts';
import { rememberSecrets } from '../support/logs.ts';
import { GO_CACHE } from '../support/program.ts';
import { ApplianceTestBed } from './clients/appliance-test-bed.ts';
import { missingPackages } from './clients/programs.ts';

const PAGE = 'docs/appliances.md';
const GO = { GO111MODULE: 'off', GOPATH: '/usr/share/gocode', GOCACHE: GO_CACHE };
const CC = ['-std=c11', '-D_DEFAULT_SOURCE', '-Wall', '-Wextra', '-Werror', '-o', 'example', 'example.c'];
const GREETED = { status: 0, stdout: expect.stringContaining('"user":"demo"') };
const BUILT = { status: 0, stdout: '', stderr: '' };

const noPython = missingPackages('requests-oauthlib').length > 0;
const noAuthlib = missingPackages('Authlib').length > 0;
const noGo = missingPackages('golang.org/x/oauth2').length > 0;
const noJq = !existsSync('/usr/bin/jq');
const without = (...headers: string[]) =>
  !existsSync('/usr/bin/cc') || headers.some((header) => globSync(`/usr/include/{*/,}${header}`).length === 0);

let bench: ApplianceTestBed;
let otherCa: string;
beforeAll(async () => {
  bench = await ApplianceTestBed.start();
  otherCa = (await createAuthority()).certificate;
});
afterAll(() => bench?.[Symbol.asyncDispose]());

test('no example of the page for appliance developers turns certificate verification off', () => {
  expect(readFileSync(join(root, PAGE), 'utf8')).not.toMatch(
    /verify ?= ?False|--insecure|curl [^\n]*-\w*k\b|rejectUnauthorized|InsecureSkipVerify|VERIFYPEER|VERIFYHOST|VERIFY_NONE|NODE_TLS/,
  );
});

describe.concurrent('the examples that trust the CA of a hub', () => {
  test.for([
    ['sh', false],
    ['python', noPython],
  ] as const)('the %s example saves only the CA that matches the pin', async ([language, lacking], { skip }) => {
    skip(lacking, 'without its packages');
    using place = bench.createWorkspace(null);
    const script = readExample('Trust it', language, PAGE);
    const start = (env: NodeJS.ProcessEnv = {}) => place[language](script, env);
    const file = place.write('latchkey-ca.pem', '');
    expect(await start({ PIN: 'bm90IHRoZSBwaW4gb2YgdGhpcyBodWIncyBDQQ' })).toMatchObject({ status: 1 });
    expect(readFileSync(file, 'utf8')).toBe('');
    await using impostor = createServer((_request, response) => response.end(`${bench.wire.ca}${otherCa}`));
    await new Promise((resolve) => impostor.listen(0, '127.0.0.1', () => resolve(null)));
    const { port } = impostor.address() as { port: number };
    for (const env of [{ HUB_HTTP: `http://127.0.0.1:${port}` }, {}]) {
      expect(await start(env)).toEqual({ status: 0, stdout: '', stderr: '' });
      expect(readFileSync(file, 'utf8').trim()).toBe(bench.wire.ca.trim());
    }
  });
});

describe.concurrent('the examples of a token for a secret', () => {
  const at = (language: string) => readExample('A token for a secret', language, PAGE);

  test('the curl example gets a token for a secret, and rejects another CA', async () => {
    using place = bench.createWorkspace();
    const heater = await bench.addAppliance('heater');
    const { stdout } = await place.sh(at('sh'), heater);
    expect(await bench.userOf(JSON.parse(stdout).access_token)).toBe('demo');
    place.write('latchkey-ca.pem', otherCa);
    expect(await place.sh(at('sh'), heater)).toMatchObject({ status: 60, stdout: '' });
  });

  test.skipIf(noPython)('the Python example gets a token for a secret, and rejects another CA', async () => {
    using place = bench.createWorkspace();
    const cooler = await bench.addAppliance('cooler');
    expect(await place.python(at('python'), cooler)).toMatchObject(GREETED);
    place.write('latchkey-ca.pem', otherCa);
    const refused = { status: 1, stdout: '', stderr: expect.stringContaining('CERTIFICATE_VERIFY_FAILED') };
    expect(await place.python(at('python'), cooler)).toEqual(refused);
  });

  test('the Node example gets a token for a secret, and rejects a hub whose CA does not match the pin', async () => {
    using place = bench.createWorkspace(null);
    const dryer = await bench.addAppliance('dryer');
    expect(await place.js(at('js'), dryer)).toMatchObject(GREETED);
    const refused = { status: 1, stdout: '', stderr: expect.stringContaining('This is not our hub') };
    expect(await place.js(at('js'), { ...dryer, PIN: 'wrong' })).toEqual(refused);
  });

  test.skipIf(noGo)(
    'the Go example gets a token for a secret, and rejects a hub whose CA does not match the pin',
    async () => {
      using place = bench.createWorkspace(null);
      place.write('example.go', at('go'));
      expect(await place.run('go', ['build', '-o', 'example', 'example.go'], GO)).toEqual(BUILT);
      const washer = await bench.addAppliance('washer');
      expect(await place.run('./example', [], washer)).toMatchObject(GREETED);
      const refused = { status: 1, stdout: '', stderr: expect.stringContaining('This is not our hub') };
      expect(await place.run('./example', [], { ...washer, PIN: 'wrong' })).toEqual(refused);
    },
  );
});

describe.concurrent('the examples of the device flow', () => {
  const at = (language: string) => readExample('Pairing by itself', language, PAGE);

  test.skipIf(noPython)('the Python example of the device flow pairs and uses its token', async () => {
    using place = bench.createWorkspace();
    expect(await place.python(at('python'), await bench.addAppliance('pump', false))).toMatchObject(GREETED);
  });

  test('the Node example of the device flow pairs and gets a token', async () => {
    using place = bench.createWorkspace();
    const [before] = readExample('A token for a secret', 'js', PAGE).split('const { access_token }');
    const script = `${before}${at('js')}\nconsole.log(access_token);`;
    const { stdout } = await place.js(script, await bench.addAppliance('inverter', false));
    expect(await bench.userOf(stdout.trim())).toBe('demo');
  });

  test.skipIf(noJq)('the curl example of the device flow pairs and gets a token', async () => {
    using place = bench.createWorkspace();
    const { status, stdout } = await place.sh(at('sh'), await bench.addAppliance('car', false));
    expect(status).toBe(0);
    expect(await bench.userOf(JSON.parse(stdout).access_token)).toBe('demo');
  });

  test.for([
    ['sh', noJq],
    ['python', noPython],
  ] as const)(
    'the %s example of the device flow shows an error of the hub and stops',
    async ([language, lacking], { skip }) => {
      skip(lacking, 'without its packages');
      using place = bench.createWorkspace();
      const wrong = { ...(await bench.addAppliance(`toaster-${language}`, false)), CLIENT_SECRET: 'wrong' };
      const refused = { status: 1, stdout: '', stderr: expect.stringMatching(/invalid_client.*error_description/) };
      expect(await place[language](at(language), wrong)).toEqual(refused);
    },
  );

  test.for([
    ['sh', noJq],
    ['python', noPython],
  ] as const)(
    'the %s example of the device flow shows that the pairing has failed, and stops',
    async ([language, lacking], { skip }) => {
      skip(lacking, 'without its packages');
      using place = bench.createWorkspace();
      const name = `kettle-${language}`;
      // Nobody logs in where nothing is to be opened.
      const script = at(language).replace('"Open', '"Visit');
      const running = place[language](script, await bench.addAppliance(name, false));
      await eventually(async () => (await bench.hub.appliance(name)).state === 'pairing');
      await bench.hub.ask((control) => control.unpair(name));
      const { status, stderr } = await running;
      expect(status).toBe(1);
      expect(stderr).toMatch(/expired_token.*the pairing was called off at the hub/);
    },
  );
});

describe.concurrent('the examples of registration', () => {
  const at = (language: string) => readExample('Introducing itself', language, PAGE);

  test('the curl example of registration adds an appliance with an invite', async () => {
    using place = bench.createWorkspace();
    const { stdout } = await place.sh(at('sh'), { INVITE: await bench.invite('boiler') });
    const said = JSON.parse(stdout) as Record<string, string>;
    rememberSecrets([said['client_secret'] ?? '']);
    expect(said).toMatchObject({ client_name: 'boiler', ca_fingerprint: bench.pin });
    expect(await bench.hub.appliance('boiler')).toMatchObject({ client_id: said['client_id'], state: 'unpaired' });
  });

  test('the Node example of registration gets from the pin and the invite to an access token', async () => {
    using place = bench.createWorkspace(null);
    const script = `${at('js')}\nconsole.log(JSON.stringify({ client_secret, client_id, access_token, expires_in }));`;
    const { status, stdout, stderr } = await place.js(script, { INVITE: await bench.invite('wallbox') });
    expect({ status, stderr }).toEqual({ status: 0, stderr: '' });
    const said = JSON.parse(stdout) as Record<string, string>;
    rememberSecrets([said['client_secret'] ?? '']);
    expect(await bench.userOf(said['access_token'])).toBe('demo');
    expect(await bench.hub.appliance('wallbox')).toMatchObject({ client_id: said['client_id'], state: 'active' });
  });
});

describe.concurrent('the examples with a key instead of a secret', () => {
  const at = (language: string) => readExample('A key instead of a secret', language, PAGE);

  test('the Node example gets a token with a key that the shell example created and registered', async () => {
    using place = bench.createWorkspace();
    const registered = await place.sh(at('sh'), { INVITE: await bench.invite('solar') });
    expect(registered).toMatchObject({ status: 0, stderr: '' });
    const { client_id, client_secret } = JSON.parse(registered.stdout) as Record<string, string>;
    expect(client_secret).toBeUndefined();
    await bench.hub.pair('solar', bench.emulator);
    const env = { CLIENT_ID: client_id };
    const { status, stdout, stderr } = await place.js(`${at('js')}\nconsole.log(access_token);`, env);
    expect({ status, stderr }).toEqual({ status: 0, stderr: '' });
    expect(await bench.userOf(stdout.trim())).toBe('demo');
  });

  test.skipIf(noAuthlib)('the Python example gets a token with a registered key', async () => {
    using place = bench.createWorkspace();
    const { pem, env } = await bench.addApplianceWithKey('battery');
    place.write('key.pem', pem);
    expect(await place.python(at('python'), env)).toMatchObject(GREETED);
  });
});

describe.concurrent('the examples for small devices', () => {
  test.skipIf(without('curl/curl.h', 'cjson/cJSON.h'))(
    'the C example with libcurl pairs once, gets a token on each run, and rejects another CA',
    async () => {
      using place = bench.createWorkspace();
      place.write('example.c', readExample('Small devices', 'c', PAGE));
      expect(await place.run('/usr/bin/cc', [...CC, '-lcurl', '-lcjson'])).toEqual(BUILT);
      const lamp = await bench.addAppliance('lamp', false);
      for (const time of ['first', 'second']) {
        const { stdout, ...ended } = await place.run('./example', [], lamp);
        expect({ time, ...ended }).toEqual({ time, status: 0, stderr: '' });
        expect(await bench.userOf(stdout.trim())).toBe('demo');
      }
      place.write('latchkey-ca.pem', otherCa);
      expect(await place.run('./example', [], lamp)).toMatchObject({ status: 1, stderr: expect.stringMatching(/SSL/) });
    },
  );

  test.skipIf(without('mbedtls/ssl.h'))(
    'the C example with mbedTLS gets a token, and rejects another host name and another CA',
    async () => {
      using place = bench.createWorkspace(null);
      place.write('example.c', readExample('Smaller still', 'c', PAGE));
      expect(await place.run('/usr/bin/cc', [...CC, '-lmbedtls', '-lmbedx509', '-lmbedcrypto'])).toEqual(BUILT);
      const address = { HUB_ADDRESS: '127.0.0.1', HUB_PORT: String(bench.hub.httpsPort) };
      const name = `${(await bench.hub.status()).hub.id}.local`;
      const sensor = { ...(await bench.addAppliance('sensor')), ...address, HUB_NAME: name };
      place.write('ca.pem', bench.wire.ca);
      const { stdout } = await place.run('./example', [], sensor);
      expect(await bench.userOf(JSON.parse(stdout).access_token)).toBe('demo');
      const refused = { status: 1, stdout: '', stderr: expect.stringContaining('no handshake') };
      expect(await place.run('./example', [], { ...sensor, HUB_NAME: 'other.local' })).toEqual(refused);
      for (const ca of [otherCa, bench.wire.ca + otherCa]) {
        place.write('ca.pem', ca);
        expect(await place.run('./example', [], sensor)).toMatchObject({ status: 2, stdout: '' });
      }
    },
  );
});

describe('the examples for a token that the cloud API rejects', () => {
  const at = (language: string) => readExample('When the cloud says 401', language, PAGE);

  test.skipIf(noPython)(
    'the Python example gets a valid token after the cloud API has rejected its token',
    async () => {
      using place = bench.createWorkspace();
      const fridge = await bench.addAppliance('fridge');
      for (const { id } of bench.emulator.grants()) bench.emulator.revoke(id, 'access_tokens');
      const { status, stdout } = await place.python(at('python'), fridge);
      expect({ status, stdout }).toMatchObject({ status: 0, stdout: expect.stringMatching(/^200 .*"user":"demo"/) });
    },
  );

  test('the curl example reports a rejected token, and the next token is a new, valid one', async () => {
    using place = bench.createWorkspace();
    const oven = await bench.addAppliance('oven');
    const token = async () => {
      const { stdout } = await place.sh(readExample('A token for a secret', 'sh', PAGE), oven);
      return String(JSON.parse(stdout).access_token);
    };
    const refused = await token();
    expect(await place.sh(at('sh'), { ...oven, REFUSED: refused })).toMatchObject({ status: 0, stderr: '' });
    const fresh = await token();
    expect(fresh).not.toBe(refused);
    expect(await bench.userOf(fresh)).toBe('demo');
  });
});
