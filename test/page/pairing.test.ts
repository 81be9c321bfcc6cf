import { request } from 'undici';
import { beforeEach, expect, it } from 'vitest';
import type { Emulator } from '../../src/emulator/index.ts';
import { sentBrowser } from '../lan/hub-client.ts';
import { HubProcess } from '../support/hub-process.ts';
import { rememberSecrets } from '../support/logs.ts';
import { type PageResponse, PageVisitor } from '../support/page-visitor.ts';
import { startPortal } from '../support/portal.ts';
import { setUpOnce } from '../support/set-up.ts';

let emulator: Emulator;
let hub: HubProcess;
let visitor: PageVisitor;
let csrf: string;

setUpOnce(async (parts) => {
  emulator = parts.use(await startPortal());
  hub = parts.use(await HubProcess.start({ emulator, here: true }));
  visitor = parts.use(await PageVisitor.signedIn(hub));
  csrf = await visitor.csrf();
});
let appliances = 0;
let name = '';
beforeEach(async () => {
  name = `appliance-${++appliances}`;
  await hub.addAppliance(name, 'Monitoring');
});

function send(path: string, more: Record<string, string> = {}): Promise<PageResponse> {
  return visitor.post(path, { csrf, ...more });
}

/** The address that a response redirects to. */
function target({ status, headers }: PageResponse): string {
  expect(status).toBe(303);
  return String(headers['location']);
}

/** The page of a pairing, once it shows the link. */
async function withLink(path: string): Promise<{ text: string; link: string }> {
  for (let tries = 0; tries < 100; tries++) {
    const { text } = await visitor.get(path);
    const [, link] = /id="login" href="([^"]+)"/.exec(text) ?? [];
    if (link !== undefined)
      return { text, link: link.replaceAll(/&#(\d+);/g, (_, code) => String.fromCharCode(Number(code))) };
  }
  throw new Error('there was no link');
}

const stateOf = (link: string) => new URL(link).searchParams.get('state') ?? '';

it('the result page of the last login of a batch names its success first, even if another login was refused', async () => {
  await hub.addAppliance('z-last', 'Monitoring');
  const batch = target(await send('/pair-all'));
  const logIn = async (deny: boolean) => {
    const { location } = await emulator.login({ state: stateOf((await withLink(batch)).link), user: 'demo', deny });
    return (await request(location, { headers: sentBrowser(await visitor.get(batch)) })).body.text();
  };
  expect(await logIn(true)).toContain(`class="button" href="${visitor.origin}${batch}">Try again</a>`);
  await send(`${batch}/next`);
  expect(await logIn(false)).toMatch(
    new RegExp(`<h1>z-last is connected</h1>.*1 of 2 logins is done.*<b>${name}</b>: .*did not allow`, 's'),
  );
});

it('the page of a pairing shows link, QR code and time left, leads a second start to it, and can cancel it', async () => {
  const path = target(await send(`/appliances/${name}/pair`));
  expect(path).toMatch(/^\/pairings\/[\w-]+$/);
  const { text, link } = await withLink(path);
  expect(link).toContain(emulator.frontendUrl);
  expect(text).toContain('<svg class="qr"');
  expect(text).toMatch(/The link expires <time/);
  expect(text).toContain('<noscript><meta http-equiv="refresh" content="5"></noscript>');
  expect(target(await send(`/appliances/${name}/pair`))).toBe(path);
  expect(target(await visitor.get(`/p/${name}`, { 'sec-fetch-site': 'none' }))).toBe(path);
  expect((await hub.appliance(name)).authorize_url).toBe(link);
  expect(target(await send(`${path}/cancel`))).toBe(`/appliances/${name}`);
  expect((await visitor.get(path)).text).toContain('The attempt was cancelled or skipped at the hub.');
});

it('the page of a pairing shows its refusal or success, and then has no QR code', async () => {
  const path = target(await send(`/appliances/${name}/pair`));
  const { location } = await emulator.login({ state: stateOf((await withLink(path)).link), deny: true });
  const sent = await visitor.get(path);
  await (await request(location, { headers: sentBrowser(sent) })).body.dump();
  const refused = await visitor.get(path);
  expect(refused.text).toContain('did not allow the access, or the portal refused it.');
  expect(refused.text).not.toContain('class="qr"');
  expect(refused.text).not.toContain('http-equiv="refresh"');

  const fresh = target(await send(`${path}/fresh`));
  expect(fresh).not.toBe(path);
  const next = await emulator.login({ state: stateOf((await withLink(fresh)).link), user: 'demo' });
  await (await request(next.location)).body.dump();
  expect((await visitor.get(fresh)).text).toContain(`${name} is connected`);
  // The older page links to the new pairing.
  expect((await visitor.get(path)).text).toContain(`href="${fresh}"`);
});

it('the link of a label of a connected appliance leads to its page, which says so, and starts no login', async () => {
  await hub.pair(name, emulator);
  const own = { 'sec-fetch-site': 'none' };
  expect(target(await visitor.get(`/p/${name}`, own))).toBe(`/appliances/${name}`);
  expect((await hub.appliance(name)).authorize_url).toBeUndefined();
  expect((await visitor.get(`/appliances/${name}`)).text).toMatch(/Logged in, but not used yet.*Log in again/s);
  await send(`/appliances/${name}/pair`);
  expect(target(await visitor.get(`/p/${name}`, own))).toMatch(/^\/pairings\//);
});

it('the page of an appliance with a new secret says all is well only once it has asked with that', async () => {
  await hub.pair(name, emulator);
  const credentials = await hub.ask((control) => control.request('rotateSecret', { name }));
  rememberSecrets([credentials.client_secret]);
  await hub.requestToken(credentials);
  const shows = async (text: string) => expect((await visitor.get(`/appliances/${name}`)).text).toContain(text);
  await shows('All is well');
  const next = await hub.ask((control) => control.request('rotateSecret', { name }));
  rememberSecrets([next.client_secret]);
  await shows(`${name} has not asked with its new secret yet.`);
  await hub.requestToken(next);
  await shows('All is well');
});

it('the page says that a pairing or an appliance does not exist', async () => {
  for (const path of ['/pairings/nobody-knows', '/p/%3Cb%3E', '/appliances/nobody/label']) {
    const { status, text } = await visitor.get(path);
    expect({ path, status }).toEqual({ path, status: 404 });
    expect(text).toContain('To the overview');
    expect(text).not.toContain('<b>');
  }
  expect((await send('/appliances/nobody/pair')).status).toBe(404);
  expect((await send('/pairings/nobody-knows/fresh')).status).toBe(404);
});

it('the link of a label asks first if another site, a prefetch or HEAD opens it', async () => {
  for (const headers of [{ 'sec-fetch-site': 'same-site' }, { 'sec-fetch-site': 'none', purpose: 'prefetch' }]) {
    const { status, text } = await visitor.get(`/p/${name}`, headers);
    expect({ headers, status }).toEqual({ headers, status: 200 });
    expect(text).toContain(`Connect ${name} again?`);
    expect(text).toContain(`action="/appliances/${name}/pair"`);
  }
  await visitor.send('HEAD', `/p/${name}`, {});
  expect((await hub.appliance(name)).state).toBe('unpaired');
  const own = { 'sec-fetch-site': 'same-origin', referer: `${visitor.origin}/sign-in` };
  expect(target(await visitor.get(`/p/${name}`, own))).toMatch(/^\/pairings\//);
});

it('the page approves only the appliance that it showed, and not a later one with the same name', async () => {
  await hub.ask((control) => control.request('openRegistration', { open_for: 60 }));
  const register = async () => {
    const body = JSON.stringify({ client_name: 'stove' });
    const { text } = await visitor.send('POST', '/oauth/register', { 'content-type': 'application/json' }, body);
    rememberSecrets([(JSON.parse(text) as { client_secret: string }).client_secret]);
    const [, shown = ''] = /name="client_id" value="([^"]+)"/.exec((await visitor.get('/appliances/stove')).text) ?? [];
    return { client_id: shown };
  };
  const isWaiting = async () => (await hub.appliance('stove')).waiting_for_approval !== undefined;
  const first = await register();
  await hub.ask((control) => control.request('removeAppliance', { name: 'stove' }));
  const later = await register();
  expect(later).not.toEqual(first);
  for (const form of [first, {}]) expect((await send('/appliances/stove/approve', form)).status).toBe(404);
  expect(await isWaiting()).toBe(true);
  for (let taps = 0; taps < 2; taps++) {
    expect(target(await send('/appliances/stove/approve', later))).toBe('/appliances/stove');
  }
  expect(await isWaiting()).toBe(false);
  await hub.ask((control) => control.request('removeAppliance', { name: 'stove' }));
});

it('the result page offers the next pairing of a batch only to the browser that brought the accepted code', async () => {
  const batch = target(await send('/pair-all'));
  expect(target(await send('/pair-all'))).toBe(batch);
  const { link } = await withLink(batch);
  const { location } = await emulator.login({ state: stateOf(link), user: 'demo' });
  const browser = await request(location);
  const page = await browser.body.text();
  const [set = ''] = [browser.headers['set-cookie'] ?? []].flat();
  expect(set).toMatch(/^latchkey-batch=[\w-]{22}; Path=\/callback; Max-Age=3600; HttpOnly; SameSite=Lax$/);
  const [cookie = ''] = set.split(';');
  rememberSecrets([cookie.slice('latchkey-batch='.length)]);
  const [, action = ''] = /action="(\/callback\/[\w-]+\/next)"/.exec(page) ?? [];

  const { text: other } = await withLink(batch);
  const [, next = ''] = /<h2>(appliance-\d+)<\/h2>/.exec(other) ?? [];
  expect(page).toContain(`Next: ${next}`);
  const { origin, pathname, searchParams } = new URL(location);
  searchParams.set('code', `${searchParams.get('code')}x`);
  for (const path of [pathname, `${pathname}?${searchParams}`, `${pathname}?error=access_denied`])
    for (const headers of [{}, { cookie: 'latchkey-batch=made-up' }]) {
      const later = await request(origin + path, { headers });
      const text = await later.body.text();
      expect(later.headers['set-cookie']).toBeUndefined();
      expect(text).not.toContain(next);
      expect(text).not.toContain('/next"');
      expect(text).toContain(`${visitor.origin}${batch}`);
      const response = await request(new URL(action, location), { method: 'POST', body: '', headers });
      expect(response.headers['location']).toBe(`${visitor.origin}${batch}`);
    }
  await using signedOut = await PageVisitor.open(hub);
  expect((await signedOut.get(batch)).status).toBe(401);

  const continueBatch = () =>
    request(new URL(action, location), { method: 'POST', body: '', headers: { origin: 'null', cookie } });
  const [one, two] = await Promise.all([continueBatch(), continueBatch()]);
  for (const { statusCode, headers } of [one, two]) {
    expect(statusCode).toBe(303);
    expect(headers['location']).toContain(`${emulator.frontendUrl}/sso/authorize`);
  }
  expect(one.headers['location']).toBe(two.headers['location']);
  const wrong = await request(new URL('/callback/made-up/next', location), {
    method: 'POST',
    body: '',
    headers: { cookie },
  });
  expect(await wrong.body.text()).toContain('“Connect all” has ended');
});
