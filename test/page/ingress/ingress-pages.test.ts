import { request } from 'undici';
import { describe, expect, it } from 'vitest';
import type { CredentialsResponse } from '../../../src/control/messages.ts';
import type { Emulator } from '../../../src/emulator/index.ts';
import { HubClient } from '../../lan/hub-client.ts';
import { eventually, HubProcess, reservePort, stateParameterOf } from '../../support/hub-process.ts';
import { type PageResponse, PageVisitor } from '../../support/page-visitor.ts';
import { startPortal } from '../../support/portal.ts';
import { PROXY_HOST, ProxyClient } from '../../support/proxy-client.ts';
import { setUpOnce } from '../../support/set-up.ts';
import { waitFor } from '../../support/wait-for.ts';

const BASE_PATH = '/api/hassio_ingress/a-token_1';
const ANNA = { 'x-remote-user-id': 'id-of-anna', 'x-remote-user-name': 'anna', 'x-remote-user-display-name': 'Anna' };

/** Addresses that no page links to. */
const MISSING = ['/nothing-here', '/appliances/nobody'];

let emulator: Emulator;
let hub: HubProcess;
let port: number;
let anna: ProxyClient;
let csrf: string;

setUpOnce(async (parts) => {
  emulator = parts.use(await startPortal());
  port = await reservePort();
  const toml = `[ingress]\nlisten = "127.0.0.1:${port}"\nfrom = "127.0.0.1"`;
  hub = parts.use(await HubProcess.start({ emulator, here: true, toml }));
  anna = parts.use(new ProxyClient(port, BASE_PATH, ANNA));
  csrf = await anna.csrf();
});

/** Everything on a page that a browser could follow, load or send a form to. */
function targetsOn({ text }: PageResponse): { readonly kind: string; readonly target: string; readonly tag: string }[] {
  return [...text.matchAll(/<(\w+)([^>]*?\s)(href|src|action|formaction|content)="([^"]*)"([^>]*)>/g)].flatMap(
    ([tag, element = '', , attribute = '', target = '']) =>
      attribute === 'content' && !/http-equiv="refresh"/.test(tag)
        ? []
        : [{ kind: `${element} ${attribute}`, target, tag }],
  );
}

/** Whether a browser that follows this stays in the proxy's frame, or leaves it for a new tab. */
function isAllowed({ kind, target, tag }: ReturnType<typeof targetsOn>[number]): boolean {
  if (target.startsWith(`${BASE_PATH}/`) || target.startsWith('#') || /^\d+$/.test(target)) return true;
  if (target === 'data:,') return kind === 'link href';
  return (
    kind === 'a href' && /^https?:\/\//.test(target) && /target="_blank"/.test(tag) && /rel="[^"]*noopener/.test(tag)
  );
}

/** The value of an attribute. */
function unescapeHtml(text: string): string {
  return text.replaceAll(/&#(\d+);/g, (_, code) => String.fromCharCode(Number(code))).replaceAll('&amp;', '&');
}

/** Logs in with the link on the page of a pairing; the portal redirects the browser to the hub's own address. */
async function logIn(path: string): Promise<void> {
  const { text } = await anna.get(path);
  const link = unescapeHtml(/id="login" href="([^"]+)"/.exec(text)?.[1] ?? '');
  const { location } = await emulator.login({ state: stateParameterOf(link), user: 'demo' });
  await (await request(location)).body.dump();
}

/** An appliance begins a device flow. @returns its user code */
async function beginDeviceFlow(credentials: CredentialsResponse): Promise<string> {
  await using client = await HubClient.of(hub);
  return (await client.beginDeviceFlow(credentials)).userCode;
}

describe('the pages below the path of a reverse proxy', () => {
  it('no link, form, script or redirect of any page leads out of the path', async () => {
    await hub.addAppliance('wallbox', 'Monitoring');
    await hub.pair('wallbox', emulator);
    await hub.addAppliance('heater');
    await hub.beginPairing('heater');
    await hub.addConnection('netatmo', 'Monitoring');
    const thermostat = await hub.addAppliance('thermostat', null, null, 'netatmo');
    await hub.addAppliance('dashboard', null, null, 'netatmo');
    await hub.pair('netatmo', emulator);
    const userCode = await beginDeviceFlow(thermostat);

    const redirects: string[] = [];
    const submit = async (path: string, form: Record<string, string> = {}) => {
      const { status, headers } = await anna.post(path, { csrf, ...form });
      expect(status, path).toBe(303);
      redirects.push(String(headers['location']));
      return String(headers['location']).slice(BASE_PATH.length);
    };
    const seeds = [
      '/',
      `/pair/approve?user_code=${userCode}`,
      '/p/wallbox',
      ...MISSING,
      await submit('/pair-all'),
      await submit('/appliances/add', { name: 'battery', form: 'A'.repeat(22) }),
      await submit('/connections/add', { name: 'tado', form: 'B'.repeat(22) }),
      await submit('/appliances/wallbox/rotate-secret', { form: 'C'.repeat(22) }),
      await submit('/connections/wallbox/refresh'),
      await submit('/appliances/heater/pair'),
    ];
    const visited = new Map<string, PageResponse>();
    const waiting = [...seeds];
    for (let path = waiting.pop(); path !== undefined && visited.size < 200; path = waiting.pop()) {
      if (visited.has(path) || path === '/live') continue;
      const page = await anna.get(path);
      visited.set(path, page);
      const { location } = page.headers;
      if (location !== undefined) redirects.push(String(location));
      const targets = targetsOn(page);
      expect(
        targets.filter((target) => !isAllowed(target)),
        path,
      ).toEqual([]);
      const found = [...targets.filter(({ kind }) => kind === 'a href').map(({ target }) => target), location];
      for (const target of found) {
        if (typeof target === 'string' && target.startsWith(`${BASE_PATH}/`))
          waiting.push(unescapeHtml(target.slice(BASE_PATH.length)));
      }
    }
    expect(redirects.filter((target) => !target.startsWith(`${BASE_PATH}/`))).toEqual([]);
    const kinds = new Set(
      [...visited.keys()].map((path) =>
        path.replace(/[?].*/, '').replaceAll(/(?<=s\/|credentials\/)[\w-]{22,}/g, ':id'),
      ),
    );
    for (const path of [
      '/',
      '/appliances/add',
      '/appliances/wallbox/label',
      '/appliances/battery/remove',
      '/connections/netatmo/remove',
      '/appliances/thermostat/move',
      '/connections/add',
      '/batches/:id',
      '/credentials/:id/battery',
    ])
      expect([...kinds]).toContain(path);
    expect([...kinds].filter((path) => path.startsWith('/pairings/')).length).toBeGreaterThan(0);
    const forms = [...visited.values()].flatMap(targetsOn).filter(({ kind }) => kind === 'form action');
    expect(new Set(forms.map(({ target }) => target)).size).toBeGreaterThan(15);
    const failed = [...visited].filter(([path, { status }]) => status >= 400 && !MISSING.includes(path));
    expect(failed.map(([path, { status }]) => [path, status])).toEqual([]);

    const script = await anna.get('/page/live-updates.ts');
    expect(script.text).toContain("new URL('../live', import.meta.url)");
    expect(script.text).not.toMatch(/['"`]\/\w/);
    // It is printed, so it leads to the hub's own address, whatever the path is today.
    expect(visited.get('/appliances/wallbox/label')?.text).not.toContain('hassio_ingress/a-token_1/p/');
  });

  it('nobody whom the proxy has signed in gets the setup code', async () => {
    expect((await anna.get('/')).text).not.toContain('id="setup-code"');
    expect((await anna.post('/setup-code', { csrf })).status).toBe(404);
  });

  it('links follow the path of each request, and a path of "/" is the root of a site', async () => {
    for (const [path, link] of [
      ['/other', '/other/appliances/add'],
      ['/other/', '/other/appliances/add'],
      ['/', '/appliances/add'],
    ] as const) {
      expect((await anna.get('/', { 'x-ingress-path': path })).text).toContain(`id="add" href="${link}"`);
    }
    const { headers } = await anna.post('/registration/close', { csrf }, { 'x-ingress-path': '/other' });
    expect(headers['location']).toBe('/other/');
  });

  it.each(['//evil.example', undefined])('the path %j is answered with 400', async (path) => {
    for (const url of ['/', '/nothing-here', '/page/page.js']) {
      const { status, text } = await anna.get(url, { 'x-ingress-path': path });
      expect([status, text]).toEqual([400, expect.stringContaining('X-Ingress-Path')]);
    }
    expect((await anna.post('/registration/open', { csrf }, { 'x-ingress-path': path })).status).toBe(400);
  });

  it('only the proxy’s own site can frame a page, and no page sets a cookie', async () => {
    const paths = [
      '/',
      '/nothing-here',
      '/appliances/add',
      await hub.addAppliance('pump').then(() => '/appliances/pump'),
    ];
    await hub.beginPairing('pump');
    const { headers } = await anna.post('/appliances/pump/pair', { csrf });
    const pairing = String(headers['location']).slice(BASE_PATH.length);
    for (const path of [...paths, pairing]) {
      const page = await anna.get(path, { accept: 'text/html' });
      expect(page.headers, path).toMatchObject({ 'x-frame-options': 'SAMEORIGIN', 'cache-control': 'no-store' });
      expect(page.headers['content-security-policy'], path).toMatch(/(^|; )frame-ancestors 'self'(;|$)/);
      expect(page.headers['set-cookie'], path).toBeUndefined();
    }
    expect(headers['set-cookie']).toBeUndefined();
  });
});

describe('the hub’s own address', () => {
  it('the headers of a proxy change nothing there', async () => {
    await using visitor = await PageVisitor.open(hub);
    const headers = { 'x-ingress-path': BASE_PATH, ...ANNA };
    const signIn = await visitor.get('/', headers);
    expect(signIn.status).toBe(401);
    expect(signIn.headers).toMatchObject({ 'x-frame-options': 'DENY' });
    expect(signIn.headers['content-security-policy']).toContain("frame-ancestors 'none'");
    expect(signIn.text).not.toContain(BASE_PATH);
    expect((await visitor.post('/registration/open', { csrf }, headers)).status).toBe(401);

    await using installer = await PageVisitor.signedIn(hub);
    const page = await installer.get('/', headers);
    expect(page.text).toContain('href="/appliances/add"');
    expect(page.headers['content-security-policy']).toContain("frame-ancestors 'none'");
    await installer.post(
      '/appliances/add',
      { csrf: await installer.csrf(), name: 'own', form: 'D'.repeat(22) },
      headers,
    );
    const added = await waitFor(() => {
      const found = hub.events('appliance_added').find(({ appliance }) => appliance === 'own');
      expect(found).toBeDefined();
      return found;
    });
    expect(added).not.toHaveProperty('user');
  });
});

describe('a form below the path of a reverse proxy', () => {
  const origin = `http://${PROXY_HOST}`;
  const registration = async () => (await hub.status()).hub.registration_open_for;

  it.each([
    ['no port in Host', { host: 'parent.example' }],
    ['X-Forwarded-Host', { host: '127.0.0.1:1', 'x-forwarded-host': `${PROXY_HOST}, inner.example` }],
    ['neither Origin nor Fetch Metadata', { origin: undefined, 'sec-fetch-site': undefined }],
  ])('a form with %s is accepted', async (_, headers) => {
    await anna.post('/registration/close', { csrf });
    expect((await anna.post('/registration/open', { csrf }, headers)).status).toBe(303);
    expect(await registration()).toBeGreaterThan(0);
  });

  it.each([
    ['of another site', { 'sec-fetch-site': 'cross-site' }],
    ['with the origin of another port', { origin: 'http://parent.example:9', 'sec-fetch-site': undefined }],
    ['of a sandboxed frame', { origin: 'null', 'sec-fetch-site': undefined }],
    [
      'with an origin that only begins like the host',
      { origin: `${origin}.evil.example`, 'sec-fetch-site': undefined },
    ],
  ])('a form %s is rejected', async (_, headers) => {
    await anna.post('/registration/close', { csrf });
    expect((await anna.post('/registration/open', { csrf }, headers)).status).toBe(403);
    expect(await registration()).toBeUndefined();
  });

  it('a form needs the token of its own user', async () => {
    await using ben = new ProxyClient(port, BASE_PATH, { 'x-remote-user-id': 'id-of-ben' });
    await using nobody = new ProxyClient(port, BASE_PATH);
    await anna.post('/registration/close', { csrf });
    for (const token of [await ben.csrf(), await nobody.csrf(), '', 'x', undefined]) {
      const form: Record<string, string> = token === undefined ? {} : { csrf: token };
      expect((await anna.post('/registration/open', form)).status).toBe(403);
    }
    expect(await registration()).toBeUndefined();
    expect((await ben.post('/registration/open', { csrf: await ben.csrf() })).status).toBe(303);
  });

  it('a user’s token is still valid after a restart of the hub', async () => {
    await hub.kill('SIGTERM');
    await hub.launch();
    await eventually(async () => hub.events('ingress_listening').length > 0);
    expect(await anna.csrf()).toBe(csrf);
    expect(csrf).toMatch(/^[\w-]{43}$/);
  });

  it('a rejected form leads back to the page that it was on, below the path', async () => {
    const back = async (referer: string) => {
      const { text } = await anna.post('/registration/open', {}, { referer });
      return unescapeHtml(/<a class="button" href="([^"]*)">/.exec(text)?.[1] ?? '');
    };
    expect(await back(`${origin}${BASE_PATH}/appliances/pump?x=1`)).toBe(`${BASE_PATH}/appliances/pump?x=1`);
    expect(await back(`${origin}/elsewhere`)).toBe(`${BASE_PATH}/`);
    expect(await back('http://evil.example/appliances/pump')).toBe(`${BASE_PATH}/`);
  });

  it('no other site is allowed to send headers of its own', async () => {
    const preflight = { origin: 'http://evil.example', 'access-control-request-method': 'POST' };
    const { status, headers } = await anna.send('OPTIONS', '/registration/open', preflight);
    expect(status).toBeGreaterThanOrEqual(400);
    expect(Object.keys(headers).filter((name) => name.startsWith('access-control-'))).toEqual([]);
  });

  it('another site can not load a page as an image', async () => {
    expect((await anna.get('/', { 'sec-fetch-site': 'cross-site', 'sec-fetch-dest': 'image' })).status).toBe(403);
  });

  it('the address of a label starts nothing without a confirmation', async () => {
    await hub.addAppliance('fridge');
    const headers = { 'sec-fetch-site': 'same-origin', referer: `${origin}${BASE_PATH}/` };
    for (const sent of [headers, {}]) expect((await anna.get('/p/fridge', sent)).status).toBe(200);
    expect((await hub.appliance('fridge')).state).toBe('unpaired');
  });

  it('a link of another site to a confirmation leads to a page that changes nothing', async () => {
    const headers = { 'sec-fetch-site': 'cross-site', 'sec-fetch-dest': 'document' };
    const targets = ['/appliances/pump/remove', '/pair/approve?user_code=WDJB-MJHT'];
    const responses = await Promise.all(targets.map((target) => anna.get(target, headers)));
    expect(responses.map((page) => page.headers['location'])).toEqual([
      `${BASE_PATH}/appliances/pump`,
      `${BASE_PATH}/`,
    ]);
  });
});

describe('what a user of a reverse proxy does', () => {
  it('the log and the history name the user', async () => {
    const submit = (path: string, form: Record<string, string> = {}) => anna.post(path, { csrf, ...form });
    /** Waits for an event, because the log arrives later than the response. */
    const expectEvent = (event: string, members: object = {}) =>
      waitFor(() => expect(hub.events(event).at(-1)).toMatchObject({ user: 'Anna', ...members }));
    await submit('/connections/add', { name: 'shared', form: 'E'.repeat(22) });
    await expectEvent('connection_added');
    await submit('/appliances/add', { name: 'boiler', form: 'F'.repeat(22) });
    await expectEvent('appliance_added');
    await submit('/appliances/boiler/rotate-secret', { form: 'G'.repeat(22) });
    await expectEvent('secret_rotated');
    await submit('/registration/close');
    await expectEvent('registration_closed');

    const { headers } = await submit('/appliances/boiler/pair');
    await expectEvent('pairing_started', { connection: 'boiler', by: 'person' });
    const pairing = String(headers['location']).slice(BASE_PATH.length);
    await logIn(pairing);
    await hub.until('boiler', ({ state }) => state === 'active', 30);
    await expectEvent('connection_paired');
    await submit('/connections/boiler/unpair');
    await expectEvent('connection_unpaired');
    const history = await hub.json<{ kind: string; user?: string }[]>('history', 'boiler');
    expect(history.map(({ kind, user }) => [kind, user])).toEqual([
      ['unpaired', 'Anna'],
      ['paired', 'Anna'],
    ]);

    await submit('/appliances/boiler/rename', { name: 'Boiler cellar' });
    await expectEvent('appliance_renamed', { before: 'boiler', title: 'Boiler cellar' });
    await submit('/connections/shared/rename', { name: 'Shared by all' });
    await expectEvent('connection_renamed', { connection: 'shared' });
    await submit('/appliances/boiler/move', { 'login-shared': 'yes' });
    await expectEvent('appliance_moved');
    await submit('/appliances/boiler/remove');
    await expectEvent('appliance_removed', { appliance: 'boiler' });
  });
});
