import { Agent, request } from 'undici';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { Secret } from '../../src/core/secret.ts';
import { type Emulator, startEmulator } from '../../src/emulator/index.ts';
import { en } from '../../src/page/texts/en.ts';
import { FORM_MEDIA_TYPE } from '../../src/system/http/form.ts';
import { findRoutes } from '../support/fastify-routes.ts';
import { HubProcess } from '../support/hub-process.ts';
import { LanServerHarness } from '../support/lan-server-harness.ts';
import { rememberSecrets } from '../support/logs.ts';
import { PageVisitor } from '../support/page-visitor.ts';

type Port = 'https' | 'http';

/** A route as the hub has registered it. */
interface Route {
  readonly port: Port;
  readonly method: string;
  readonly path: string;
}

const METADATA = [
  '/.well-known/oauth-authorization-server',
  '/.well-known/oauth-authorization-server/connections/:connection',
  '/.well-known/openid-configuration',
  '/.well-known/openid-configuration/connections/:connection',
  '/connections/:connection/.well-known/openid-configuration',
];

/** The routes that need no session. Every other route needs a sign-in with the setup code. */
const FOR_ALL: Readonly<Record<Port, readonly string[]>> = {
  https: [
    ...METADATA.map((path) => `GET ${path}`),
    'GET /ca-old.pem',
    'GET /ca.pem',
    'GET /callback',
    'GET /oauth/authorize',
    'GET /openapi.json',
    'GET /page/:file',
    'GET /pair',
    'GET /sign-in',
    'GET /sign-in/:token',
    'POST /callback/:nonce/next',
    'POST /connections/:connection/oauth/device_authorization',
    'POST /connections/:connection/oauth/revoke',
    'POST /connections/:connection/oauth/token',
    'POST /oauth/connections',
    'POST /oauth/device_authorization',
    'POST /oauth/register',
    'POST /oauth/revoke',
    'POST /oauth/token',
    'POST /pair',
    'POST /sign-in',
  ],
  http: [
    'GET /',
    ...['/oauth/*', '/connections/:connection/oauth/*', ...METADATA].flatMap((path) => [`GET ${path}`, `POST ${path}`]),
    'GET /ca-old.pem',
    'GET /ca.pem',
    'GET /callback',
    'GET /callback/:nonce',
    'GET /l/:key',
    'GET /pair',
    'POST /callback/:nonce/next',
  ],
};

/** The cookie that the stub accepts as signed in. */
const COOKIE = '__Host-latchkey=good';
const CSRF = 'what-forms-carry';

const parts = new AsyncDisposableStack();
let lan: LanServerHarness;
let routes: readonly Route[];

/** Starts the LAN server and records the routes of its two ports; the HTTPS port is created first. */
beforeAll(async () => {
  const { started, routes: found } = await findRoutes(() => LanServerHarness.start());
  lan = parts.use(started);
  routes = found.flatMap((some, server) => some.map((route) => ({ port: server === 0 ? 'https' : 'http', ...route })));
  const session = { cookie: new Secret('good'), csrfToken: CSRF, lifetime: 600 };
  lan.home.people.access.findSession = (cookie) => (cookie === 'good' ? session : null);
});
afterAll(() => parts.disposeAsync());

const nameOf = ({ method, path }: Route) => `${method === 'HEAD' ? 'GET' : method} ${path}`;
const isForAll = (route: Route) => FOR_ALL[route.port].includes(nameOf(route));
const guarded = (...methods: string[]) => routes.filter((route) => !isForAll(route) && methods.includes(route.method));

/** The hub that a request goes to. */
interface Target {
  readonly hub: { readonly httpPort: number; readonly httpsPort: number };
  readonly dispatcher: Agent;
  /** The value of every parameter in the path. */
  readonly value: string;
}

async function sendRequest(
  { port, method, path }: Pick<Route, 'port' | 'method' | 'path'>,
  headers: Record<string, string | undefined> = {},
  form: Record<string, string> = {},
  { hub, dispatcher, value }: Target = { hub: lan.server, dispatcher: lan.agent, value: 'anything' },
): Promise<{ readonly status: number; readonly text: string; readonly headers: object }> {
  const { httpsPort, httpPort } = hub;
  const origin = port === 'https' ? `https://127.0.0.1:${httpsPort}` : `http://127.0.0.1:${httpPort}`;
  const isForm = method === 'POST';
  const response = await request(origin + path.replaceAll(/:\w+/g, value), {
    method: method as 'GET',
    dispatcher,
    headers: {
      ...(isForm && { origin, 'sec-fetch-site': 'same-origin', 'content-type': FORM_MEDIA_TYPE }),
      ...headers,
    },
    ...(isForm && { body: new URLSearchParams(form).toString() }),
  });
  return { status: response.statusCode, headers: response.headers, text: await response.body.text() };
}

/** A page without its only part that depends on the requested address. */
const withoutNext = (text: string) => text.replace(/name="next" value="[^"]*"/, 'name="next"');

it('the routes that need no session are exactly those that the test lists', () => {
  const found = routes.filter(isForAll).map((route) => `${route.port} ${nameOf(route)}`);
  const named = (['https', 'http'] as const).flatMap((port) => FOR_ALL[port].map((name) => `${port} ${name}`));
  expect([...new Set(found)].sort()).toEqual(named.sort());
  expect(routes.filter((route) => route.port === 'http' && !isForAll(route))).toEqual([]);
  expect(guarded('GET').length).toBeGreaterThan(10);
  expect(guarded('POST').length).toBeGreaterThan(10);
  expect(guarded('HEAD').map(nameOf)).toEqual(guarded('GET').map(nameOf));
  expect(guarded('GET', 'POST', 'HEAD')).toHaveLength(routes.filter((route) => !isForAll(route)).length);
});

describe('requests without a session', () => {
  // This hub has no services behind the session check, so a request that passes the check gets a 500.
  it('every page shows the same sign-in page without a session', async () => {
    const { text: page } = await sendRequest({ port: 'https', method: 'GET', path: '/sign-in' });
    expect(page).toContain('Test hub');
    for (const route of guarded('GET')) {
      const { status, text: shown } = await sendRequest(route);
      // The link of a label says first what it is for.
      const text = shown.replace(`<p>${en.signIn.labelScanned}</p>`, '');
      expect([status, withoutNext(text)], nameOf(route)).toEqual([401, withoutNext(page)]);
    }
    for (const route of guarded('HEAD')) expect((await sendRequest(route)).status, nameOf(route)).toBe(401);
  });

  it('no form changes anything without a valid session cookie, even with a CSRF token', async () => {
    for (const cookie of ['', '__Host-latchkey=bad', 'latchkey=good', '__Host-latchkey="good"']) {
      for (const route of guarded('POST')) {
        const { status, text } = await sendRequest(route, { cookie }, { csrf: CSRF });
        expect(status, nameOf(route)).toBe(401);
        expect(text, nameOf(route)).toContain('so nothing was changed');
      }
    }
  });
});

describe('the privacy of a home', () => {
  const name = 'xylophone';
  let emulator: Emulator;
  let hubProcess: HubProcess;
  let dispatcher: Agent;
  let clientId: string;

  beforeAll(async () => {
    // No other test uses this address: a hub of another test would otherwise add to the counted requests.
    emulator = parts.use(await startEmulator({ host: '127.77.0.1' }));
    hubProcess = parts.use(await HubProcess.start({ emulator, here: true }));
    clientId = (await hubProcess.addAppliance(name, 'Marimba')).client_id;
    dispatcher = parts.adopt(new Agent({ connect: { ca: (await hubProcess.authority()).certificate } }), (agent) =>
      agent.destroy(),
    );
  });

  it('routes that need no session reveal nothing about an appliance, even to a client that knows its names', async () => {
    for (const route of routes.filter((one) => isForAll(one) && one.method !== 'HEAD')) {
      for (const value of [name, clientId, 'page.ts', '..%2f..']) {
        const form = { client_id: clientId, user_code: value, code: value, token: value, again: '1' };
        const { status, text, headers } = await sendRequest(route, {}, form, { hub: hubProcess, dispatcher, value });
        expect(status, nameOf(route)).toBeLessThan(500);
        // Forms have what was sent in their fields, and metadata the path that was requested (RFC 8414, 3.3).
        const echoed = /value="[^"]*"|action="[^"]*"|https:\/\/[^\s"]*\/connections\/[^\s"]+/g;
        const revealed = JSON.stringify(headers) + text.replaceAll(echoed, '');
        expect(revealed, nameOf(route)).not.toMatch(/xylophone|Marimba/);
      }
    }
  });

  it('no page changes anything when it is opened by a link while signed in', async () => {
    await using visitor = await PageVisitor.open(hubProcess);
    const { code } = await hubProcess.ask((control) => control.request('setupCode'));
    rememberSecrets([code]);
    await visitor.signIn(code);
    const state = async () => JSON.stringify((await hubProcess.status()).appliances);
    const before = await state();
    const pages = guarded('GET').filter(({ path }) => path !== '/live');
    for (const crossSite of [
      { 'sec-fetch-site': 'cross-site', 'sec-fetch-dest': 'document' },
      { 'sec-fetch-site': 'same-origin' },
    ]) {
      for (const route of pages) {
        const headers = { cookie: visitor.cookie ?? '', ...crossSite };
        const { status } = await sendRequest(route, headers, {}, { hub: hubProcess, dispatcher, value: name });
        expect([200, 303, 404, 410], nameOf(route)).toContain(status);
        expect(await state(), nameOf(route)).toBe(before);
      }
    }
    expect(emulator.requests.map(({ method, url }) => `${method} ${url}`)).toEqual([]);
  });
});

describe('a page with a session', () => {
  // A site can make a person click twice, so that the second click confirms on the hub's page.
  it.each([
    ['/appliances/remove/remove', '/appliances/remove'],
    ['/appliances/remove/rotate-secret?x=1', '/appliances/remove'],
    ['/connections/remove/unpair', '/connections/remove'],
    ['/pair/approve?user_code=WDJB-MJHT', '/pair?user_code=WDJB-MJHT'],
  ])('a link on another site to the confirmation %s leads to the page above it', async (path, above) => {
    const route = { port: 'https', method: 'GET', path } as const;
    for (const site of ['cross-site', 'same-site']) {
      for (const cookie of [COOKIE, '']) {
        const crossSite = { cookie, 'sec-fetch-site': site, 'sec-fetch-dest': 'document' };
        expect(await sendRequest(route, crossSite)).toMatchObject({
          status: 303,
          headers: { location: above },
        });
      }
    }
  });

  it.each(['image', 'iframe', 'empty', 'script'])(
    'another site can not load a page with a session as %s',
    async (destination) => {
      for (const site of ['cross-site', 'same-site']) {
        const headers = { cookie: COOKIE, 'sec-fetch-site': site, 'sec-fetch-dest': destination };
        for (const route of guarded('GET', 'HEAD'))
          expect((await sendRequest(route, headers)).status, nameOf(route)).toBe(403);
      }
    },
  );
});

describe('a form with a session', () => {
  it.each([
    [{ origin: 'https://evil.example' }, { csrf: CSRF }],
    [{ 'sec-fetch-site': 'cross-site' }, { csrf: CSRF }],
    [{ 'sec-fetch-site': 'same-site' }, { csrf: CSRF }],
    [{ origin: undefined, 'sec-fetch-site': undefined }, {}],
    [{}, { csrf: `${CSRF}x` }],
  ])('a form with the headers %j and the fields %j changes nothing', async (headers, form) => {
    for (const route of guarded('POST')) {
      const { status } = await sendRequest(route, { cookie: COOKIE, ...headers }, form);
      expect(status, nameOf(route)).toBe(403);
    }
  });
});
