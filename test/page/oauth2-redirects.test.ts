import { request } from 'undici';
import { describe, expect, it } from 'vitest';
import type { Emulator } from '../../src/emulator/index.ts';
import { de } from '../../src/page/texts/de.ts';
import { en } from '../../src/page/texts/en.ts';
import { FORM, HubClient, type HubResponse, sentBrowser } from '../lan/hub-client.ts';
import { eventually, HubProcess } from '../support/hub-process.ts';
import { rememberSecrets } from '../support/logs.ts';
import { PageVisitor } from '../support/page-visitor.ts';
import { startPortal } from '../support/portal.ts';
import { setUpOnce } from '../support/set-up.ts';

let emulator: Emulator;
let hub: HubProcess;
let client: HubClient;
let visitor: PageVisitor;
setUpOnce(async (parts) => {
  emulator = parts.use(await startPortal({ flows: 'code', redirectRule: 'any', pkce: 'required' }));
  hub = parts.use(
    await HubProcess.start({ emulator, here: true, portalType: 'oauth2', portal: 'title = "Nordwind heating"' }),
  );
  client = parts.use(await HubClient.of(hub));
  visitor = parts.use(await PageVisitor.signedIn(hub));
});

let appliances = 0;

/** An open pairing of a new appliance. */
interface OpenPairing {
  readonly name: string;
  readonly link: URL;
  /** The path of its page. */
  readonly page: string;
}

async function openPairing(name = `appliance-${++appliances}`): Promise<OpenPairing> {
  if (!(await hub.status()).appliances.some((one) => one.name === name)) await hub.addAppliance(name);
  const { headers } = await visitor.post(`/appliances/${name}/pair`, { csrf: await visitor.csrf() });
  const page = String(headers['location']);
  expect(page).toMatch(/^\/pairings\//);
  const link = await linkOn(page);
  expect(link.searchParams.get('redirect_uri')).toBe(`http://127.0.0.1:${hub.httpPort}/callback`);
  return { name, link, page };
}

/** The login link on the page of a pairing. @param before a link that is spent */
function linkOn(page: string, before?: URL, browser = visitor): Promise<URL> {
  return eventually(async () => {
    const [, href = ''] = /id="login" href="([^"]+)"/.exec((await browser.get(page)).text) ?? [];
    const link = URL.parse(href.replaceAll(/&#(\d+);/g, (_, code) => String.fromCharCode(Number(code))));
    return link !== null && link.href !== before?.href && link;
  });
}

/** Logs in, or refuses, at the portal. @returns the address to which it redirects the browser */
async function logIn({ link }: Pick<OpenPairing, 'link'>, refuse = false): Promise<string> {
  const form = refuse ? { action: 'refuse' } : { username: 'demo', password: 'demo' };
  const { statusCode, headers, body } = await request(link, {
    method: 'POST',
    headers: { 'content-type': FORM },
    body: new URLSearchParams(form).toString(),
  });
  await body.dump();
  expect(statusCode).toBe(303);
  return String(headers['location']);
}

/** The address with other parameters; null removes one. */
function withQuery(address: string, changes: Record<string, string | null>): string {
  const url = new URL(address);
  for (const [name, value] of Object.entries(changes)) {
    if (value === null) url.searchParams.delete(name);
    else url.searchParams.set(name, value);
  }
  return url.href;
}

function codeExchanges(): number {
  return emulator.requests.filter(({ form }) => form['grant_type'] === 'authorization_code').length;
}

async function paste({ page }: OpenPairing, address: string, language = 'en') {
  const form = { csrf: await visitor.csrf(), address };
  return visitor.post(`${page}/address`, form, { 'accept-language': language });
}

function expectPage(response: HubResponse, status: number, text: string): void {
  expect({ status: response.status, text: response.text }).toEqual({ status, text: expect.stringContaining(text) });
  expect(response.headers).toMatchObject({ 'cache-control': 'no-store', 'referrer-policy': 'no-referrer' });
}

it('the button of the login has the title of the only portal', async () => {
  const { page, name } = await openPairing();
  expect((await visitor.get(page)).text).toContain('>Log in at “Nordwind heating”<');
  expect((await visitor.get(page, { 'accept-language': 'de' })).text).toContain('>Bei „Nordwind heating“ anmelden<');
  await hub.ask((control) => control.request('removeAppliance', { name }));
});

describe.each(['http', 'https'] as const)('the redirect of an OAuth 2.0 portal over %s', (scheme) => {
  const open = (address: string, language = 'en', browser: Record<string, string> = {}) => {
    const { pathname, search } = new URL(address);
    return client[scheme](pathname + search, { headers: { 'accept-language': language, ...browser } });
  };

  it('a login connects, and a reload of its page shows the same result without another exchange', async () => {
    const pairing = await openPairing();
    const address = await logIn(pairing);
    expectPage(await open(address), 200, `${pairing.name} is connected`);
    const count = codeExchanges();
    expectPage(await open(address), 200, `${pairing.name} is connected`);
    expectPage(await open(address, 'de'), 200, `${pairing.name} ist verbunden`);
    const back = `href="https://127.0.0.1:${hub.httpsPort}${pairing.page}"`;
    expect((await open(address)).text.replaceAll('&#61;', '=')).toContain(back);
    expect(codeExchanges()).toBe(count);
    expect((await hub.appliance(pairing.name)).state).toBe('active');
  });

  it('a refused login ends the pairing, and a reload of its page shows the same', async () => {
    const pairing = await openPairing();
    const address = await logIn(pairing, true);
    expect(new URL(address).searchParams.get('error')).toBe('access_denied');
    // Anybody who saw the link may send this.
    const forged = await open(address);
    expectPage(forged, 200, en.result.reasons.refused_by_user);
    expect(forged.text).toContain(en.result.reopenLink);
    expect((await hub.appliance(pairing.name)).state).toBe('pairing');
    const browser = sentBrowser(await visitor.get(pairing.page));
    for (let opened = 0; opened < 2; opened++) {
      expectPage(await open(address, 'en', browser), 200, en.result.reasons.refused_by_user);
    }
    expect((await hub.appliance(pairing.name)).state).toBe('unpaired');
  });

  it('a response of another issuer is not used, and the login still works afterwards', async () => {
    const pairing = await openPairing();
    const address = await logIn(pairing);
    const count = codeExchanges();
    for (const iss of ['https://other.example', null]) {
      expectPage(await open(withQuery(address, { iss })), 400, en.result.foreignIssuer);
    }
    expect(codeExchanges()).toBe(count);
    expectPage(await open(address), 200, `${pairing.name} is connected`);
  });

  it('an unknown state and an address without one are not used', async () => {
    const pairing = await openPairing();
    const address = await logIn(pairing);
    expectPage(await open(withQuery(address, { state: 'A'.repeat(22) })), 404, en.result.unknownLink);
    expectPage(await open(withQuery(address, { state: null })), 400, en.result.malformed);
    expectPage(await open(withQuery(address, { code: null })), 400, en.result.noCode);
    expect((await hub.appliance(pairing.name)).state).toBe('pairing');
    expectPage(await open(address), 200, `${pairing.name} is connected`);
  });

  it('a login whose code the portal refuses leads to a new link, and its state cannot be used again', async () => {
    const pairing = await openPairing();
    const address = await logIn(pairing);
    const forged = ['a-forged-code', 'another-forged-code'].map((code) => `${code}-${pairing.name}`);
    rememberSecrets(forged);
    const [first = '', second = ''] = forged.map((code) => withQuery(address, { code }));
    for (let opened = 0; opened < 2; opened++) {
      const page = await open(first);
      expectPage(page, 200, `${pairing.name} is not connected yet`);
      expect(page.text).toContain(en.result.useNewLink);
    }
    expectPage(await open(second), 409, en.result.usedLink);
    const renewed = { ...pairing, link: await linkOn(pairing.page, pairing.link) };
    expectPage(await open(await logIn(renewed)), 200, `${pairing.name} is connected`);
  });
});

describe('the page that takes the address of a finished login', () => {
  it('the page of a login by redirect leads there, and neither has the address in a link', async () => {
    const pairing = await openPairing();
    const page = await visitor.get(pairing.page);
    expect(page.text).toContain(`href="${pairing.page}/address"`);
    expect(page.text).toContain(en.pairing.scan.machine);
    const pasting = await visitor.get(`${pairing.page}/address`);
    expect(pasting.status).toBe(200);
    expect(pasting.text).toContain('<svg class="picture"');
    expect(pasting.text).toContain(en.pairing.paste.httpsOnly);
    expect(pasting.text).toMatch(/<input id="address"[^>]* autocomplete="off"/);
    // It does not reload without scripts: that would empty the field.
    expect(pasting.text).not.toContain('http-equiv');
  });

  it('for a login that ends at an app, it says which browser shows the address, and takes it', async () => {
    const options = { emulator, here: true, portalType: 'oauth2', portal: 'redirect_uri = "maker.app:/back"' } as const;
    await using own = await HubProcess.start(options);
    await own.addAppliance('wallbox');
    await using browser = await PageVisitor.signedIn(own);
    const { headers } = await browser.post('/appliances/wallbox/pair', { csrf: await browser.csrf() });
    const page = String(headers['location']);
    const address = await logIn({ link: await linkOn(page, undefined, browser) });
    expect(address).toMatch(/^maker\.app:\/back\?/);
    const { text } = await browser.get(`${page}/address`);
    const { chrome, firefox, phone, safari } = en.pairing.paste.browsers;
    for (const said of [chrome('maker.app:'), firefox, phone, safari]) expect(text).toContain(said);
    expect(text).not.toContain('<svg class="picture"');
    const sent = await browser.post(`${page}/address`, { address, csrf: await browser.csrf() });
    expect(sent.status).toBe(303);
    expect((await own.appliance('wallbox')).state).toBe('active');
  });

  it('a pasted address connects, and is accepted a second time', async () => {
    const pairing = await openPairing();
    const address = await logIn(pairing);
    for (let sent = 0; sent < 2; sent++) {
      const { status, headers } = await paste(pairing, ` ${address}#\n`);
      expect({ status, location: headers['location'] }).toEqual({ status: 303, location: pairing.page });
    }
    expect((await visitor.get(pairing.page)).text).toContain(`${pairing.name} is connected`);
    const { status, headers } = await visitor.get(`${pairing.page}/address`);
    expect({ status, location: headers['location'] }).toEqual({ status: 303, location: pairing.page });
    expect((await hub.appliance(pairing.name)).state).toBe('active');
  });

  it('the page says in the language of the browser why an address was not used, and keeps what was typed', async () => {
    const language = 'de';
    const { problems } = de.pairing.paste;
    const other = await openPairing();
    const pairing = await openPairing();
    const address = await logIn(pairing);
    const otherAddress = await logIn(other);
    const forged = withQuery(address, { code: `a-forged-code-${language}` });
    rememberSecrets([`a-forged-code-${language}`]);
    const count = codeExchanges();
    const rejected: [string, string][] = [
      ['<b>"not an address"</b>', problems.malformed],
      [withQuery(address, { code: null }), problems.malformed],
      [withQuery(address, { state: 'A'.repeat(22) }), problems.unknown],
      [otherAddress, problems.other_pairing],
      [withQuery(address, { iss: 'https://other.example' }), problems.foreign_issuer],
    ];
    for (const [typed, problem] of rejected) {
      const { status, text } = await paste(pairing, typed, language);
      expect({ typed, status, text }).toEqual({ typed, status: 400, text: expect.stringContaining(problem) });
      const escaped = typed.replaceAll(/[&"'<>=`]/g, (character) => `&#${character.charCodeAt(0)};`);
      expect(text).toContain(`value="${escaped}"`);
      expect(text).toContain('aria-invalid="true"');
    }
    expect(codeExchanges()).toBe(count);
    // The portal refuses this code, so the link is spent.
    expect((await paste(pairing, forged, language)).status).toBe(303);
    await linkOn(pairing.page, pairing.link);
    const { status, text } = await paste(pairing, address, language);
    expect({ status, text }).toEqual({ status: 400, text: expect.stringContaining(problems.used) });
  });

  it('a form without the session, or without its CSRF token, is rejected and its address is not used', async () => {
    const pairing = await openPairing();
    const address = await logIn(pairing);
    expect((await visitor.post(`${pairing.page}/address`, { address })).status).toBe(403);
    await using stranger = await PageVisitor.open(hub);
    const sent = await stranger.post(`${pairing.page}/address`, { address, csrf: await visitor.csrf() });
    expect(sent.status).toBe(401);
    expect((await hub.appliance(pairing.name)).state).toBe('pairing');
    expect((await paste({ ...pairing, page: '/pairings/unknown' }, address)).status).toBe(404);
  });

  it('the log has neither the codes nor the addresses that were pasted', async () => {
    const codes = emulator.secretsIssued('code');
    expect(codes.length).toBeGreaterThan(5);
    const log = JSON.stringify(hub.events());
    for (const secret of [...codes, 'a-forged-code']) expect(log).not.toContain(secret);
  });
});
