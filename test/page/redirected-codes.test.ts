import { request } from 'undici';
import { afterEach, beforeEach, expect, test } from 'vitest';
import type { Emulator } from '../../src/emulator/index.ts';
import { HubClient } from '../lan/hub-client.ts';
import { eventually, HubProcess } from '../support/hub-process.ts';
import { rememberSecrets } from '../support/logs.ts';
import { PageVisitor } from '../support/page-visitor.ts';
import { startPortal } from '../support/portal.ts';
import { setUpOnce } from '../support/set-up.ts';

const users = ['demo', 'mallory'].map((name) => ({ name, password: name }));
let emulator: Emulator;
let hub: HubProcess;
let client: HubClient;
let visitor: PageVisitor;
let csrf: string;

setUpOnce(async (parts) => {
  emulator = parts.use(await startPortal({ users }));
  hub = parts.use(await HubProcess.start({ emulator, here: true, lan: 'mdns = false' }));
  client = parts.use(await HubClient.of(hub));
  visitor = parts.use(await PageVisitor.signedIn(hub));
  csrf = await visitor.csrf();
});
let appliances = 0;
let name = '';
beforeEach(async () => {
  name = `appliance-${++appliances}`;
});
afterEach(() => emulator.clearFaults());

/** Polling gets no code from the portal: only its redirect brings one. */
const disablePolling = () => emulator.addFault({ kind: 'status', status: 404, endpoint: 'code/get', times: null });

const stateOf = (link: string) => new URL(link).searchParams.get('state') ?? '';

/** A person logs in through a link. @returns the path and query of the redirect to the hub */
async function logIn(link: string, user = 'demo'): Promise<string> {
  const { location } = await emulator.login({ state: stateOf(link), user });
  const { pathname, search } = new URL(location);
  return pathname + search;
}

/** The callback of a pairing with a code of mallory's own login, which the portal accepts from this hub. */
async function forged(link: string): Promise<string> {
  const config = new URL(`${emulator.baseUrl}/external/oauth2helper/config/${emulator.clientId}`);
  config.searchParams.set('redirect_url', 'http://192.168.1.66/');
  const response = await request(config, { method: 'POST' });
  const { authorize_url } = (await response.body.json()) as { authorize_url: string };
  const code = new URLSearchParams((await logIn(authorize_url, 'mallory')).split('?')[1]).get('code');
  // A person who saw the link knows the nonce: the portal's state is not secret.
  const claims = Buffer.from(stateOf(link).split('.')[1] ?? '', 'base64url').toString();
  const path = /\/callback\/[\w-]+/.exec(claims)?.[0] ?? '';
  return `${path}?code=${encodeURIComponent(code ?? '')}`;
}

/** The account that the appliance is connected with. */
async function account(): Promise<string> {
  const { access_token } = await hub.ask((control) => control.request('token', { name }));
  const headers = { authorization: `Bearer ${access_token}` };
  const response = await request(`${emulator.baseUrl}/api/whoami`, { headers });
  return ((await response.body.json()) as { user: string }).user;
}

/** The cookie that a browser would store from a response for the hub's callback. */
function cookieFrom({ headers }: { readonly headers: Readonly<Record<string, unknown>> }): string {
  const set = [headers['set-cookie'] ?? []].flat().map(String);
  const [mark = ''] = set.filter((firstResponse) => firstResponse.startsWith('latchkey-sent='));
  expect(mark).toMatch(/^latchkey-sent=[\w-]{43}; Path=\/callback; Max-Age=3600; HttpOnly; SameSite=Lax$/);
  const [cookie = ''] = mark.split(';');
  rememberSecrets([cookie.slice('latchkey-sent='.length)]);
  return cookie;
}

const exchanges = () => emulator.requests.filter(({ form }) => form['grant_type'] === 'authorization_code').length;

test("a code from an attacker's account at the callback connects nothing, and the true login still does", async () => {
  await hub.addAppliance(name);
  const { href } = await hub.beginPairing(name);
  const before = exchanges();
  const attack = await client.http(await forged(href));
  expect(attack.text).toContain('The portal has not confirmed this login to the hub');
  expect(attack.headers['set-cookie']).toBeUndefined();
  expect(exchanges()).toBe(before);
  expect((await hub.appliance(name)).state).toBe('pairing');
  expect((await client.http(await logIn(href))).text).toContain(`${name} is connected`);
  expect(await account()).toBe('demo');
  expect(exchanges()).toBe(before + 1);
});

test('only the browser of the short link can complete a login if the portal does not serve the code', async () => {
  disablePolling();
  await hub.addAppliance(name);
  const sent = await client.http((await hub.shortLink(name)).pathname);
  const cookie = cookieFrom(sent);
  const link = String(sent.headers['location']);
  const made = 'latchkey-sent=made-up';
  expect((await client.http(await forged(link), { headers: { cookie: made } })).text).toContain('not confirmed');
  const callback = await client.http(await logIn(link), { headers: { cookie } });
  expect(callback.text).toContain(`${name} is connected`);
  expect(await account()).toBe('demo');
});

test.each(['/pair', "the hub's page"])(
  'a browser that got the link from %s completes the login if the portal serves no code',
  async (place) => {
    disablePolling();
    const { userCode } = await client.beginDeviceFlow(await hub.addAppliance(name));
    const begun = await (place === '/pair'
      ? client.post('/pair', { user_code: userCode })
      : visitor.post(`/appliances/${name}/pair`, { csrf }));
    const location = String(begun.headers['location']);
    const cookie = cookieFrom(place === '/pair' ? begun : await visitor.get(location));
    const link = place === '/pair' ? location : String((await hub.appliance(name)).authorize_url);
    expect((await client.http(await logIn(link), { headers: { cookie } })).text).toContain(`${name} is connected`);
  },
);

test("an installer confirms another browser's login if the portal serves no code, and pair reports it too", async () => {
  disablePolling();
  await hub.addAppliance(name);
  const watching = hub.cli('pair', name, '--json');
  const link = await eventually(async () => (await hub.appliance(name)).authorize_url);
  const begun = await visitor.post(`/appliances/${name}/pair`, { csrf });
  const path = String(begun.headers['location']);
  const callback = await client.http(await logIn(link));
  expect(callback.text).toContain('The portal has not confirmed this login to the hub');
  const { text } = await visitor.get(path);
  expect(text).toContain('Somebody has logged in from the address 127.0.0.1. Was it you?');
  const [, login = ''] = /name="login" value="([\w-]{43})"/.exec(text) ?? [];
  expect((await visitor.post(`${path}/confirm`, { csrf: 'made-up', login })).status).toBe(403);
  expect((await visitor.post(`${path}/confirm`, { csrf, login: 'made-up' })).status).toBe(303);
  expect((await hub.appliance(name)).state).toBe('pairing');
  expect((await visitor.post(`${path}/confirm`, { csrf, login })).status).toBe(303);
  await eventually(async () => (await hub.appliance(name)).state === 'active');
  expect(await account()).toBe('demo');
  const { status, stderr } = await watching;
  expect(status).toBe(0);
  expect(stderr).toContain('somebody at 127.0.0.1 has logged in, but the portal has not confirmed that login');
});
