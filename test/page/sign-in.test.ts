import { readFile } from 'node:fs/promises';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { SetupCodeResponse } from '../../src/control/messages.ts';
import type { Emulator } from '../../src/emulator/index.ts';
import { HubProcess } from '../support/hub-process.ts';
import { type PageResponse, PageVisitor } from '../support/page-visitor.ts';
import { startPortal } from '../support/portal.ts';
import { setUpOnce } from '../support/set-up.ts';

const WRONG = 'BBBB-BBBB-BBBB-BBBB';
/** No response may contain this unescaped. */
const SCRIPT = '"><script>alert(1)</script>';

let emulator: Emulator;
let hub: HubProcess;
let setup: SetupCodeResponse;
/** Counts the devices: each test uses its own, because wrong codes lock a device out. */
let devices = 1;

setUpOnce(async (parts) => {
  emulator = parts.use(await startPortal());
  hub = parts.use(await HubProcess.start({ emulator, here: true }));
  setup = await hub.setupCode();
});

/** A browser on a device that no other test uses. */
function newDevice(): Promise<PageVisitor> {
  devices += 1;
  return PageVisitor.open(hub, `127.0.0.${devices}`);
}

async function signedIn(): Promise<PageVisitor> {
  const visitor = await newDevice();
  expect(await visitor.signIn(setup.code)).toMatchObject({ status: 303, headers: { location: '/' } });
  return visitor;
}

/** The address that the form of a page continues to. */
const nextOf = (text: string) => /name="next" value="([^"]*)"/.exec(text)?.[1]?.replaceAll('&#61;', '=');
const setCookie = ({ headers }: PageResponse) => [headers['set-cookie'] ?? []].flat();

describe('a browser that is not signed in', () => {
  it('the log of the first start says where to find the setup code, and does not contain it', async () => {
    const log = await readFile(hub.log, 'utf8');
    expect(log.match(/page_never_opened/g)).toHaveLength(1);
    expect(log).toContain('latchkey setup-code');
    expect(log).not.toContain(setup.code);
  });

  it('a label of the hub can name its page by a name that stays when the address changes', () => {
    expect(setup.stable_page).toMatch(/^https:\/\/latchkey-[0-9a-f]{8}\.local:\d+\/$/);
    expect(new URL(setup.stable_page).port).toBe(new URL(setup.page).port);
  });

  it('the link of a label says without a sign-in what it is for and whom to ask, and not whether the appliance exists', async () => {
    await hub.addAppliance('labelled-stove');
    await using visitor = await newDevice();
    const pages = [];
    for (const name of ['labelled-stove', 'no-such-stove']) {
      const { status, text } = await visitor.get(`/p/${name}`);
      expect(status).toBe(401);
      expect(text).toContain('ask the person who set the hub up');
      pages.push(text.replaceAll(name, ''));
    }
    expect(pages[1]).toBe(pages[0]);
    expect((await visitor.get('/')).text).not.toContain('This label leads');
  });

  it('the sign-in page shows the name of the hub and where to find the code, and nothing about the home', async () => {
    await hub.addAppliance('secret-wallbox');
    await using visitor = await newDevice();
    for (const path of ['/', '/sign-in', '/live']) {
      const { status, text } = await visitor.get(path);
      expect(status, path).toBe(path === '/sign-in' ? 200 : 401);
      expect(text).toContain('Test hub');
      expect(text).toContain('latchkey setup-code');
      expect(text).toContain('Setup code');
      expect(text).not.toContain('wallbox');
    }
  });

  it('a form of an expired session is refused, and signing in leads back to its page', async () => {
    await using visitor = await newDevice();
    const form = { csrf: 'of-an-earlier-session' };
    for (const [referer, next] of [
      [`${visitor.origin}/appliances/wallbox?x=1`, '/appliances/wallbox?x=1'],
      ['https://evil.example/appliances/wallbox', '/'],
      ['nonsense', '/'],
    ] as const) {
      const { status, text } = await visitor.post('/sign-out', form, { referer });
      expect(status).toBe(401);
      expect(text).toContain('so nothing was changed');
      expect(nextOf(text)).toBe(next);
    }
  });

  it('signing in without a code shows a message and does not count as an attempt', async () => {
    await using visitor = await newDevice();
    for (let count = 0; count < 12; count++) {
      const { status, text } = await visitor.post('/sign-in', 'code=&next=%2F');
      expect(status).toBe(400);
      expect(text).toContain('Type the setup code first.');
    }
    expect(await visitor.signIn(setup.code)).toMatchObject({ status: 303 });
  });

  it('the sign-in page ties the message about a wrong code to its field', async () => {
    await using visitor = await newDevice();
    const { status, text } = await visitor.post('/sign-in', { code: WRONG });
    expect(status).toBe(401);
    expect(text).toMatch(/<p class="problem" id="problem" role="alert">This is not the setup code/);
    expect(text).toMatch(/<input id="code"[^>]* aria-describedby="problem hint" aria-invalid="true"/);
    expect(text).toMatch(/autocapitalize="characters"[^>]*autocorrect="off"/);
  });

  it.each([
    ['wdj', 'This is too short: the setup code has sixteen letters, and you typed 3.'],
    [`${WRONG} bb`, 'This is too long: the setup code has sixteen letters, and you typed 18.'],
    [WRONG, 'This is not the setup code of this hub.'],
  ])('the sign-in page says what is wrong with the code %s', async (code, problem) => {
    await using visitor = await newDevice();
    const { status, text } = await visitor.post('/sign-in', { code });
    expect([status, text]).toEqual([401, expect.stringContaining(problem)]);
  });
});

describe("a session on the hub's page", () => {
  it('a session is a cookie for twelve hours that no script and no other site can read', async () => {
    await using visitor = await newDevice();
    const [cookie, ...others] = setCookie(await visitor.signIn(setup.code));
    expect(others).toEqual([]);
    expect(cookie).toMatch(/^__Host-latchkey=[\w-]{43}; Max-Age=43200; Path=\/; HttpOnly; Secure; SameSite=Strict$/);
    const again = await visitor.signIn(setup.code);
    expect(setCookie(again)[0]).not.toBe(cookie);
  });

  it('a session ends when its browser signs out, also for a copy of its cookie', async () => {
    await using visitor = await signedIn();
    await using thief = await newDevice();
    thief.cookie = visitor.cookie;
    expect(await thief.isSignedIn()).toBe(true);
    const out = await visitor.post('/sign-out', { csrf: await visitor.csrf() });
    expect(out).toMatchObject({ status: 303, headers: { location: '/sign-in?out' } });
    expect(setCookie(out)[0]).toMatch(/^__Host-latchkey=; Max-Age=0; Path=\/; HttpOnly; Secure; SameSite=Strict$/);
    expect((await visitor.get('/sign-in?out')).text).toContain('You are signed out.');
    expect(await thief.isSignedIn()).toBe(false);
    expect((await thief.get('/')).text).toContain('You are no longer signed in.');
  });

  it('a session ends when the setup code is rotated', async () => {
    await using visitor = await signedIn();
    const csrf = await visitor.csrf();
    const before = setup;
    setup = await hub.setupCode({ rotate: true });
    expect(setup.code).not.toBe(before.code);
    expect(await visitor.isSignedIn()).toBe(false);
    expect(await visitor.post('/sign-out', { csrf })).toMatchObject({ status: 401 });
    expect(await visitor.signIn(before.code)).toMatchObject({ status: 401 });
    await using other = await newDevice();
    expect(await other.follow(before.sign_in)).toMatchObject({ status: 410 });
    expect(await visitor.signIn(setup.code)).toMatchObject({ status: 303 });
  });
});

it('a browser that signed in by a one-time address gets the setup code by a form alone, and the log says which device', async () => {
  await using visitor = await newDevice();
  await visitor.follow((await hub.setupCode()).sign_in);
  const csrf = await visitor.csrf();
  const overview = (await visitor.get('/')).text;
  expect(overview).toContain('action="/setup-code"');
  expect(overview).not.toContain(setup.code);
  for (const refused of [
    await visitor.get('/setup-code'),
    await visitor.post('/setup-code', {}),
    await visitor.post('/setup-code', { csrf }, { origin: 'https://evil.example', 'sec-fetch-site': 'cross-site' }),
  ])
    expect([refused.status >= 400, refused.text.includes(setup.code)]).toEqual([true, false]);
  expect(hub.events('setup_code_shown')).toEqual([]);

  const shown = await visitor.post('/setup-code', { csrf });
  expect(shown).toMatchObject({ status: 200, headers: { 'cache-control': 'no-store' } });
  expect(shown.text).toContain(`>${setup.code}</p>`);
  expect(shown.text).toContain(`open ${visitor.origin}/ there`);
  expect(hub.events('setup_code_shown')).toMatchObject([{ address: `127.0.0.${devices}` }]);
  expect(await readFile(hub.log, 'utf8')).not.toContain(setup.code);
});

describe('the checks of a form with a session', () => {
  let visitor: PageVisitor;
  let csrf: string;
  beforeAll(async () => {
    visitor = await signedIn();
    csrf = await visitor.csrf();
  });
  afterAll(() => visitor[Symbol.asyncDispose]());

  it('the page accepts a form only with the CSRF token of its session', async () => {
    await using other = await signedIn();
    const others = await other.csrf();
    const wrong = ['', `csrf=`, `csrf=${others}`, `csrf=${csrf}x`, `csrf=%00`, `csrf=${SCRIPT}`, `_=${csrf}`];
    for (const body of wrong) {
      const { status, text } = await visitor.post('/sign-out', body, { referer: `${visitor.origin}/?from` });
      expect(status, body).toBe(403);
      expect(text).toContain('href="/?from">Open the page</a>');
      expect(text).not.toContain('<script>alert');
    }
    expect(await visitor.isSignedIn()).toBe(true);
  });

  it('the page accepts only a well-formed form', async () => {
    const path = '/sign-out';
    expect(await visitor.post(path, `csrf=${csrf}&csrf=${csrf}`)).toMatchObject({ status: 400 });
    expect(await visitor.post('/sign-in', `code=${setup.code}&code=${setup.code}`)).toMatchObject({ status: 400 });
    const headers = { 'content-type': 'text/plain' };
    expect((await visitor.post(path, `csrf=${csrf}`, headers)).status).toBe(415);
    expect((await visitor.post('/sign-in', `code=${setup.code}`, headers)).status).toBe(415);
    expect(await visitor.isSignedIn()).toBe(true);
  });
});

describe('guessed setup codes', () => {
  it('after ten wrong setup codes an address must wait, and even the right code is not checked meanwhile', async () => {
    await using guesser = await newDevice();
    let tries = 0;
    let refused = await guesser.signIn(WRONG);
    // One more every six seconds.
    for (; refused.status === 401 && tries < 30; tries++) refused = await guesser.signIn(WRONG);
    expect(tries).toBeGreaterThanOrEqual(10);
    for (const { status, headers, text } of [refused, await guesser.signIn(setup.code)]) {
      expect(status).toBe(429);
      expect(Number(headers['retry-after'])).toSatisfy((seconds: number) => seconds >= 1 && seconds <= 6);
      expect(headers['set-cookie']).toBeUndefined();
      expect(text).toContain('Wait ten seconds, then try again. Until then the hub accepts no code');
    }
    await using installer = await signedIn();
    expect(await installer.isSignedIn()).toBe(true);
    expect(await guesser.follow((await hub.setupCode()).sign_in)).toMatchObject({ status: 303 });
    expect(await guesser.isSignedIn()).toBe(true);
  });

  it('another site can not make the device of an installer wait', async () => {
    await using installer = await newDevice();
    const foreign = { origin: 'https://evil.example', 'sec-fetch-site': 'cross-site' };
    for (let count = 0; count < 12; count++) {
      expect(await installer.post('/sign-in', { code: WRONG }, foreign)).toMatchObject({ status: 403 });
    }
    expect(await installer.signIn(setup.code)).toMatchObject({ status: 303 });
  });

  it('the log names a device with wrong setup codes once, and nothing that was typed', async () => {
    const log = await readFile(hub.log, 'utf8');
    const lines = log.split('\n').filter((line) => line.includes('too_many_wrong_setup_codes'));
    expect(new Set(lines.map((line) => /127\.0\.0\.\d+/.exec(line)?.[0])).size).toBe(lines.length);
    expect(lines.length).toBeGreaterThan(0);
    expect(log).not.toContain(WRONG);
  });
});

describe("a one-time address of the hub's page", () => {
  it('a one-time address signs in the first browser that opens it, and no other', async () => {
    const { sign_in } = await hub.setupCode();
    const visitors = await Promise.all([newDevice(), newDevice(), newDevice()]);
    const responses = await Promise.all(visitors.map((visitor) => visitor.follow(sign_in)));
    expect(responses.map(({ status }) => status).sort()).toEqual([303, 410, 410]);
    for (const [index, visitor] of visitors.entries()) {
      expect(await visitor.isSignedIn()).toBe(responses[index]?.status === 303);
      await visitor[Symbol.asyncDispose]();
    }
    const late = responses.find(({ status }) => status === 410);
    expect(late?.text).toContain('This one-time address no longer works');
    expect(late?.text).toContain('<label for="code">');
    expect(setCookie(late ?? { status: 0, headers: {}, text: '' })).toEqual([]);
  });

  it('a prefetch or HEAD does not use up a one-time address, and its use is logged without the token', async () => {
    const { sign_in } = await hub.setupCode();
    const { pathname } = new URL(sign_in);
    await using visitor = await newDevice();
    expect((await visitor.send('HEAD', pathname, {})).status).toBe(405);
    for (const name of ['sec-purpose', 'purpose', 'x-moz'])
      expect((await visitor.get(pathname, { [name]: 'prefetch;prerender' })).status).toBe(503);
    expect(await visitor.follow(sign_in)).toMatchObject({ status: 303, headers: { location: '/' } });
    const signedInByLink = hub.events('signed_in').filter(({ by }) => by === 'sign_in_link');
    expect(signedInByLink.at(-1)).toMatchObject({ address: `127.0.0.${devices}` });
    expect(await readFile(hub.log, 'utf8')).not.toContain(pathname.split('/').at(-1));
  });

  it('a one-time address from a mail or chat signs in although the browser withholds the cookie at first', async () => {
    await using visitor = await newDevice();
    const crossSite = { 'sec-fetch-site': 'cross-site', 'sec-fetch-dest': 'document', 'sec-fetch-mode': 'navigate' };
    const { headers } = await visitor.follow((await hub.setupCode()).sign_in, crossSite);
    const { cookie } = visitor;
    // A browser withholds a SameSite=Strict cookie here.
    visitor.cookie = null;
    const bounce = await visitor.get(String(headers['location']), crossSite);
    expect(bounce).toMatchObject({ status: 200, headers: { refresh: '0; url=/', 'cache-control': 'no-store' } });
    expect(bounce.text).toContain('href="/">Continue</a>');
    visitor.cookie = cookie;
    expect(await visitor.get('/', { ...crossSite, 'sec-fetch-site': 'same-origin' })).toMatchObject({ status: 200 });
    visitor.cookie = null;
    expect(await visitor.get('/', { ...crossSite, 'sec-fetch-site': 'same-origin' })).toMatchObject({ status: 401 });
  });

  it('a used one-time address leads a browser that is still signed in to the overview', async () => {
    const { sign_in } = await hub.setupCode();
    const { pathname } = new URL(sign_in);
    await using visitor = await newDevice();
    await visitor.follow(sign_in);
    const { cookie } = visitor;
    const again = await visitor.follow(sign_in);
    expect(again).toMatchObject({ status: 303, headers: { location: '/', 'cache-control': 'no-store' } });
    expect(setCookie(again)).toEqual([]);
    // From a chat, the browser sends the cookie only with the second request.
    visitor.cookie = null;
    const crossSite = { 'sec-fetch-site': 'cross-site', 'sec-fetch-dest': 'document', 'sec-fetch-mode': 'navigate' };
    const bounce = await visitor.follow(sign_in, crossSite);
    expect(bounce).toMatchObject({ status: 200, headers: { refresh: `0; url=${pathname}` } });
    visitor.cookie = cookie;
    expect(await visitor.get(pathname, { ...crossSite, 'sec-fetch-site': 'same-origin' })).toMatchObject({
      status: 303,
    });
    visitor.cookie = null;
    expect(await visitor.get(pathname, { ...crossSite, 'sec-fetch-site': 'same-origin' })).toMatchObject({
      status: 410,
    });
  });

  it.each(['/sign-in/x', `/sign-in/${encodeURIComponent(SCRIPT)}`])(
    'the address %s is not a one-time address of this hub',
    async (path) => {
      await using visitor = await newDevice();
      const { status, text } = await visitor.get(path);
      expect([404, 410]).toContain(status);
      expect(text).not.toContain('<script>alert');
    },
  );
});

describe('the redirect after signing in', () => {
  it.each([
    '//evil.example',
    '/\\evil.example',
    'https://evil.example/',
    'javascript:alert(1)',
    '/\t/evil.example',
    ' //evil.example',
    '/x/..//evil.example',
    '/@evil.example\0',
    'evil.example',
    `/${'a'.repeat(3000)}`,
    '/sign-out',
    '/sign-in/x',
  ])('signing in does not redirect to another site for next=%j', async (next) => {
    await using visitor = await newDevice();
    expect((await visitor.signIn(setup.code, next)).headers['location']).toBe('/');
    const query = await visitor.get(`/sign-in?next=${encodeURIComponent(next)}`);
    expect(query).toMatchObject({ status: 303, headers: { location: '/' } });
    visitor.cookie = null;
    const { text } = await visitor.get(`/sign-in?next=${encodeURIComponent(next)}`);
    expect(nextOf(text)).toBe('/');
  });

  it.each(['/%2Fevil.example', '/?next=//evil.example'])(
    "signing in redirects to the hub's own path for next=%j",
    async (next) => {
      await using visitor = await newDevice();
      const { headers } = await visitor.signIn(setup.code, next);
      expect(new URL(String(headers['location']), visitor.origin).origin).toBe(visitor.origin);
      expect(headers['location']).toBe(next);
    },
  );
});

it('the sign-in page escapes script in every field', async () => {
  await using visitor = await newDevice();
  const responses = [
    await visitor.post('/sign-in', { code: SCRIPT, next: `/${SCRIPT}` }),
    await visitor.post('/sign-in', { code: `\0${SCRIPT}`, next: `/?${SCRIPT}` }),
    await visitor.get(`/?${encodeURIComponent(SCRIPT)}`),
    await visitor.post('/sign-in', {}, { referer: `${visitor.origin}/${SCRIPT}` }),
  ];
  for (const { text } of responses) expect(text).not.toContain('<script>alert');
  expect(responses[0]?.text).toContain('value="&#34;&#62;&#60;script&#62;');
});

it('no page of the hub can be framed, cached or loaded with another content type', async () => {
  await using visitor = await newDevice();
  await using inside = await signedIn();
  for (const seen of [
    await visitor.get('/'),
    await visitor.get('/sign-in'),
    await visitor.post('/sign-in', { code: WRONG }),
    await visitor.get('/sign-in/x'),
    await visitor.get('/nothing-here', { accept: 'text/html' }),
    await inside.get('/'),
    await inside.post('/sign-out', {}),
  ]) {
    expect(seen.headers).toMatchObject({
      'cache-control': 'no-store',
      'content-security-policy': expect.stringMatching(/default-src 'none'.*frame-ancestors 'none'/),
      'referrer-policy': expect.stringMatching(/^(?:same-origin|no-referrer)$/),
      'x-content-type-options': 'nosniff',
      'x-frame-options': 'DENY',
    });
  }
});
