import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import type { CredentialsResponse } from '../../src/control/messages.ts';
import type { Emulator } from '../../src/emulator/index.ts';
import { eventually, HubProcess } from '../support/hub-process.ts';
import { logFolder, rememberSecrets } from '../support/logs.ts';
import { startPortal } from '../support/portal.ts';
import { setUpOnce } from '../support/set-up.ts';
import { basicAuthorization, type DeviceFlow, HubClient, type HubResponse, parseJsonBody } from './hub-client.ts';

const SCOPE = 'Monitoring RemoteControl';
const HUB_NAME = `<b>Cellar</b> & "attic' hub`;

let emulator: Emulator;
let hub: HubProcess;
let client: HubClient;

setUpOnce(async (parts) => {
  emulator = parts.use(await startPortal());
  hub = parts.use(await HubProcess.start({ emulator, here: true, env: { LATCHKEY_HUB_NAME: HUB_NAME } }));
  client = parts.use(await HubClient.of(hub));
});

function post(path: string, form: Record<string, string> | string, headers: Record<string, string> = {}, to = client) {
  return to.post(path, form, null, headers);
}

function authorize(credentials: CredentialsResponse, form = '', to = client): Promise<HubResponse> {
  return to.post('/oauth/device_authorization', form, credentials);
}

interface Flow extends DeviceFlow {
  readonly credentials: CredentialsResponse;
  readonly name: string;
}

let appliances = 0;

/** Starts a device flow of a new appliance. */
async function begin(on = { hub, client }, scope = SCOPE): Promise<Flow> {
  const name = `appliance-${++appliances}`;
  const credentials = await on.hub.addAppliance(name, scope);
  return { credentials, name, ...(await on.client.beginDeviceFlow(credentials)) };
}

/** Continues from the page to the portal; returns the portal's state. */
async function continueToPortal(userCode: string, to = client): Promise<string> {
  const response = await post('/pair', new URLSearchParams({ user_code: userCode }).toString(), {}, to);
  expect({ status: response.status, text: response.text }).toEqual({ status: 303, text: '' });
  expect(response.headers['cache-control']).toBe('no-store');
  const location = new URL(String(response.headers['location']));
  expect(location.origin).toBe(emulator.frontendUrl);
  return location.searchParams.get('state') ?? '';
}

const logIn = (state: string) => client.logIn(emulator, state);

function expectPage(response: HubResponse, status: number, text: string): void {
  expect({ status: response.status, text: response.text }).toEqual({ status, text: expect.stringContaining(text) });
  expect(response.headers).toMatchObject({
    'content-type': 'text/html; charset=utf-8',
    'cache-control': 'no-store',
    'x-content-type-options': 'nosniff',
  });
  const policy = response.headers['content-security-policy'];
  for (const part of ["default-src 'none'", "base-uri 'none'", "frame-ancestors 'none'"])
    expect(policy).toContain(part);
  expect(policy).not.toMatch(/script-src|\*|unsafe/);
  expect(['no-referrer', 'same-origin']).toContain(response.headers['referrer-policy']);
  expect(response.text).not.toContain('<b>Cellar');
}

const configs = () => emulator.requests.filter(({ endpoint }) => endpoint === 'config').length;

describe('the device authorization endpoint', () => {
  it('the hub returns two codes and the address of its page at the host that the appliance used', async () => {
    const credentials = await hub.addAppliance('heater', SCOPE);
    const response = await authorize(credentials);
    const page = `https://127.0.0.1:${hub.httpsPort}/pair`;
    const { user_code } = parseJsonBody(response);
    expect(user_code).toMatch(/^[BCDFGHJKLMNPQRSTVWXZ]{4}-[BCDFGHJKLMNPQRSTVWXZ]{4}$/);
    expect({ status: response.status, ...parseJsonBody(response) }).toEqual({
      status: 200,
      device_code: expect.stringMatching(/^[\w-]{43}$/),
      user_code,
      verification_uri: page,
      verification_uri_complete: `${page}?user_code=${user_code}`,
      expires_in: expect.any(Number),
      interval: 5,
    });
    expect(parseJsonBody(response)['expires_in']).toBeGreaterThan(880);
    expect(response.headers).toMatchObject({
      'cache-control': 'no-store',
      'content-type': expect.stringMatching(/^application\/json/),
    });
    rememberSecrets([String(parseJsonBody(response)['device_code'])]);
    const byName = await post('/oauth/device_authorization', '', {
      authorization: basicAuthorization(credentials),
      host: `localhost:${hub.httpsPort}`,
    });
    expect(parseJsonBody(byName)['verification_uri']).toBe(`https://localhost:${hub.httpsPort}/pair`);
    rememberSecrets([String(parseJsonBody(byName)['device_code'])]);
  });
});

describe('the page for user codes', () => {
  it('the page asks for a code if its address has none', async () => {
    const response = await client.https('/pair');
    expectPage(response, 200, 'Type the code');
    expect(response.text).toMatch(/<input id="user_code"[^>]* autofocus/);
    expect(response.text).toContain('<label for="user_code">');
    const put = await client.https('/pair', { method: 'PUT' });
    expect({ status: put.status, allow: put.headers['allow'] }).toEqual({ status: 405, allow: 'GET, HEAD, POST' });
  });

  it('the page shows the appliance, its scope and its code, and changes nothing before its button is used', async () => {
    const before = configs();
    const { path, name, userCode, deviceCode } = await begin();
    for (const typed of [path, `/pair?user_code=${userCode.toLowerCase().replace('-', '+')}`]) {
      const response = await client.https(typed);
      expectPage(response, 200, `Connect ${name}?`);
      expect(response.text).toContain('<b>Monitoring</b> and <b>RemoteControl</b>');
      expect(response.text).toContain(`<p class="code">${userCode}</p>`);
      expect(response.text).not.toContain(deviceCode);
      expect(response.headers['content-security-policy']).not.toContain('form-action');
    }
    expect(configs()).toBe(before);
    expect(await hub.appliance(name)).toMatchObject({
      state: 'pairing',
      authorize_url: `https://127.0.0.1:${hub.httpsPort}${path}`,
    });
  });

  it('the page redirects to the portal, and shows the result of the login', async () => {
    const { path, name, userCode, deviceCode, credentials } = await begin();
    const poll = (code: unknown) => client.poll(credentials, String(code));
    const page = `https://127.0.0.1:${hub.httpsPort}${path}`;
    const state = await continueToPortal(userCode);
    expect(await hub.appliance(name)).toMatchObject({ state: 'pairing', authorize_url: page });
    expectPage(await logIn(state), 200, `${name} is connected`);
    expectPage(await client.https(path), 200, `${name} is connected`);
    const again = await post('/pair', `user_code=${userCode}`);
    expect({ status: again.status, location: again.headers['location'] }).toEqual({ status: 303, location: path });
    const appliance = await hub.appliance(name);
    expect(appliance).toMatchObject({ state: 'active', scope: SCOPE });
    expect(appliance).not.toHaveProperty('authorize_url');
    const { access_token, refresh_token } = parseJsonBody(await poll(deviceCode));
    expect(emulator.secretsIssued('access_token')).toContain(access_token);
    rememberSecrets([String(refresh_token)]);
    const next = await client.beginDeviceFlow(credentials);
    expect(parseJsonBody(await poll(next.deviceCode))).toMatchObject({ error: 'authorization_pending' });
    expect(parseJsonBody(await poll(next.deviceCode))).toMatchObject({ error: 'slow_down' });
  });

  it('the page refuses forms that another website sends, and bodies that are not forms', async () => {
    const before = configs();
    const { userCode } = await begin();
    const body = `user_code=${userCode}`;
    for (const origin of ['https://evil.example', 'null', `http://127.0.0.1:${hub.httpsPort}`, 'https://127.0.0.1']) {
      expectPage(await post('/pair', body, { origin }), 403, 'another website');
    }
    expectPage(await post('/pair', body, { 'sec-fetch-site': 'cross-site' }), 403, 'another website');
    expectPage(await post('/pair', '{}', { 'content-type': 'application/json' }), 415, 'could not be read');
    expect((await post('/pair', body, { 'content-type': 'text/plain' })).status).toBe(415);
    expect((await post('/pair', `${body}&more=${'x'.repeat(20_000)}`)).status).toBe(413);
    expectPage(await post('/pair', `${body}&${body}`), 400, 'could not be read');
    expectPage(await client.https(`/pair?${body}&${body}`), 400, 'could not be read');
    expect((await post('/pair', '')).headers['location']).toBe('/pair');
    expect(configs()).toBe(before);
    const own = { origin: `https://127.0.0.1:${hub.httpsPort}`, 'sec-fetch-site': 'same-origin' };
    expect((await post('/pair', body, own)).status).toBe(303);
  });
});

describe('the page for user codes, opened by another website', () => {
  const LOADED = [
    { 'sec-fetch-site': 'cross-site', 'sec-fetch-mode': 'no-cors', 'sec-fetch-dest': 'image' },
    { 'sec-fetch-site': 'cross-site', 'sec-fetch-mode': 'navigate', 'sec-fetch-dest': 'iframe' },
    { 'sec-fetch-site': 'same-site', 'sec-fetch-mode': 'no-cors', 'sec-fetch-dest': 'empty' },
  ];
  const NAVIGATION = { 'sec-fetch-site': 'cross-site', 'sec-fetch-mode': 'navigate', 'sec-fetch-dest': 'document' };

  it('another website uses up no attempts of its visitor, and learns nothing about a code', async () => {
    await using visitor = client.from('127.0.0.2');
    const { path, name, userCode } = await begin();
    for (let attempt = 0; attempt < 12; attempt++) {
      for (const headers of LOADED) {
        expectPage(await visitor.https('/pair?user_code=BBBBBBBB', { headers }), 403, 'another website');
        expectPage(await visitor.https(path, { headers }), 403, 'another website');
      }
      const led = await visitor.https('/pair?user_code=BBBBBBBB', { headers: NAVIGATION });
      expectPage(led, 200, 'only if your appliance has opened this page');
    }
    const led = await visitor.https(path, { headers: NAVIGATION });
    expectPage(led, 200, 'only if your appliance has opened this page');
    expect(led.text).toContain(`value="${userCode}"`);
    expect(led.text).not.toContain(name);
    for (const site of ['same-origin', 'none']) {
      const own = await visitor.https(path, { headers: { ...NAVIGATION, 'sec-fetch-site': site } });
      expectPage(own, 200, `Connect ${name}?`);
    }
  });
});

describe('guessed user codes', () => {
  /** In the format of the hub's codes; a match with an issued one is very unlikely. */
  const WRONG_CODES = ['BBBBBB', 'BBBBCC'].flatMap((prefix) =>
    [...'BCDFGHJKLM'].map((letter) => `${prefix}B${letter}`),
  );

  it('the page refuses a device after ten wrong codes with a Retry-After, and the hub logs it once', async () => {
    await using guesser = client.from('127.0.0.3');
    const { path, name, credentials } = await begin();
    const before = configs();
    const startedAt = performance.now();
    const statuses: number[] = [];
    for (const wrong of WRONG_CODES) {
      const responses = [
        await guesser.https(`/pair?user_code=${wrong}`),
        await post('/pair', `user_code=${wrong}`, {}, guesser),
      ];
      for (const { status, headers } of responses) {
        statuses.push(status);
        if (status === 429) expect(Number(headers['retry-after'])).toBeGreaterThan(0);
      }
    }
    // One more every six seconds.
    const refilled = Math.ceil((performance.now() - startedAt) / 6000);
    expect(statuses.slice(0, 10)).toEqual(Array(10).fill(404));
    const checkedCount = statuses.filter((status) => status === 404).length;
    expect(checkedCount).toBeLessThanOrEqual(10 + refilled);
    expect(statuses.filter((status) => status === 429)).toHaveLength(statuses.length - checkedCount);
    expect(checkedCount).toBeLessThan(statuses.length);
    // Not even the right code is checked; the page itself, appliances, installers and all other people are served.
    expectPage(await guesser.https(path), 429, 'Too many wrong codes');
    expectPage(await guesser.https('/pair'), 200, 'Type the code');
    expectPage(await client.https(path), 200, `Connect ${name}?`);
    expect((await authorize(credentials, '', guesser)).status).toBe(200);
    expect(await hub.appliance(name)).toMatchObject({ state: 'pairing' });
    expect(configs()).toBe(before);
    const warnings = readFileSync(hub.log, 'utf8').match(/.*too_many_unknown_user_codes.*/g);
    expect(warnings).toEqual([expect.stringContaining('"address":"127.0.0.3"')]);
    const next = await eventually(async () => {
      const { authorize_url } = await hub.appliance(name);
      const { pathname, search } = new URL(authorize_url ?? '');
      const response = await guesser.https(pathname + search);
      return response.status === 200 && response;
    }, 30);
    expectPage(next, 200, `Connect ${name}?`);
  });

  it('the page escapes a typed code that contains markup', async () => {
    const response = await client.https(`/pair?user_code=${encodeURIComponent('"><script>x')}`);
    expectPage(response, 404, 'No waiting appliance has this code');
    expect(response.text).not.toContain('<script');
    expect(response.text).toContain('aria-invalid="true"');
  });
});

it('the logs of the hub contain no user code or device code', () => {
  const logs = readdirSync(logFolder()).filter((file) => file.startsWith(`hub.${process.pid}.`));
  const content = logs.map((file) => readFileSync(join(logFolder(), file), 'utf8')).join('\n');
  expect(content).toContain('pairing_started');
  expect(content).not.toMatch(/"(?:user|device)_code"|[BCDFGHJKLMNPQRSTVWXZ]{4}-[BCDFGHJKLMNPQRSTVWXZ]{4}/);
});
