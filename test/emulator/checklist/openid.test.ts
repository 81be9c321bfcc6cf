import { decodeJwt } from 'jose';
import { expect, test } from 'vitest';
import type { EmulatorOptions } from '../../../src/emulator/index.ts';
import { rememberSecrets } from '../../support/logs.ts';
import { StockClient, startCloud, TOOL } from '../oauth2/stock-client.ts';
import { ALICE, get, post, redirectLocation } from '../portal-client.ts';

const GOODBYE = 'https://tool.example/bye?keep=1';
const CLIENTS = [{ ...TOOL, postLogoutRedirectUris: [GOODBYE] }, { id: 'other' }];
const BOB = { name: 'bob', password: 'battery staple' };

/** A server with two users, and a browser in which ALICE has logged in and allowed the scopes openid and read. */
async function withBrowser(options: EmulatorOptions = {}) {
  const cloud = await startCloud({
    clients: CLIENTS,
    users: [{ ...ALICE, claims: { sub: 'user-1' } }, BOB],
    pkce: 'ignored',
    ...options,
  });
  const { emulator } = cloud;
  const stock = await StockClient.discover(cloud);
  const url = (more: Record<string, string>) => stock.authorizationUrl({ scope: 'openid read', state: 's', ...more });
  let cookie = '';
  return {
    ...cloud,
    stock,
    url,
    /** Opens the authorization endpoint. @returns the error or `code` in the address of the redirect, or the page */
    async open(more: Record<string, string> = {}) {
      const response = await get(url(more), { cookie });
      const { searchParams } = new URL(redirectLocation(response) || 'http://nowhere');
      const page = response.status === 200 ? await response.text() : '';
      const isLogin = page.includes('id="password"');
      const shown = page === '' ? null : isLogin ? 'login' : 'consent';
      return { page, outcome: shown ?? searchParams.get('error') ?? (searchParams.has('code') ? 'code' : '') };
    },
    /** Submits a page. @returns the tokens, or null if a page follows */
    async submit(more: Record<string, string>, form: Record<string, string>) {
      const response = await post(url(more), form, { cookie });
      const [pair = ''] = (response.headers.get('set-cookie') ?? '').split(';');
      if (pair !== '') {
        rememberSecrets([pair.split('=')[1] ?? '']);
        cookie = pair;
      }
      return response.status === 303 ? await this.exchange(response) : null;
    },
    /** Exchanges the code of a redirect. @returns the tokens, and the claims of the ID token */
    async exchange(response: Response) {
      const code = new URL(redirectLocation(response)).searchParams.get('code') ?? '';
      const client = { client_id: TOOL.id, client_secret: TOOL.secret, redirect_uri: TOOL.redirectUris[0] ?? '' };
      const token = `${emulator.frontendUrl}/oauth2/token`;
      const answer = await post(token, { ...client, grant_type: 'authorization_code', code });
      const tokens = (await answer.json()) as { id_token: string };
      return { ...tokens, claims: decodeJwt(tokens.id_token) };
    },
    /** Opens the logout endpoint. @param form sent by POST if it is given */
    async logOut(query: Record<string, string>, form?: Record<string, string>) {
      const address = `${stock.server.end_session_endpoint}?${new URLSearchParams(query)}`;
      // With the POST of another site a browser sends no cookie that is SameSite=Lax.
      const headers = { cookie: form !== undefined && form['action'] === undefined ? '' : cookie };
      const sent = form === undefined ? await get(address, headers) : await post(address, form, headers);
      const own = redirectLocation(sent).startsWith('/') ? `${emulator.frontendUrl}${redirectLocation(sent)}` : null;
      const response = own === null ? sent : await get(own, { cookie });
      const page = await response.text();
      return {
        status: response.status,
        location: redirectLocation(response),
        isAsked: page.includes('Log out alice?'),
      };
    },
    isLoggedIn: async () => (await get(url({}), { cookie })).text().then((page) => page.includes('Continue as alice')),
    logIn(more: Record<string, string> = {}, user = ALICE) {
      return this.submit(more, { username: user.name, password: user.password, action: 'login' });
    },
  };
}

test('OpenID Connect Core, 3.1.2.1: an authorization request may be a POST, and leads to the same page', async () => {
  await using browser = await withBrowser();
  const { origin, pathname, searchParams } = new URL(browser.url({ state: 'a b+c&d', login_hint: '<bob>' }));
  const sent = await post(origin + pathname, Object.fromEntries(searchParams));
  expect(sent.status).toBe(303);
  const page = new URL(redirectLocation(sent), origin);
  expect(Object.fromEntries(page.searchParams)).toEqual(Object.fromEntries(searchParams));
  expect(await (await get(page.href)).text()).toContain('value="&#60;bob&#62;"');
  const incomplete = await post(origin + pathname, { client_id: TOOL.id, state: 's' });
  const answer = await get(new URL(redirectLocation(incomplete), origin).href);
  expect(redirectLocation(answer)).toContain('error=invalid_request');
});

test('OpenID Connect Core, 3.1.2.1: prompt none shows no page, and names what is missing', async () => {
  await using browser = await withBrowser();
  const silent = { prompt: 'none' };
  expect((await browser.open(silent)).outcome).toBe('login_required');
  await browser.logIn();
  expect((await browser.open(silent)).outcome).toBe('code');
  expect((await browser.open({ ...silent, scope: 'openid write' })).outcome).toBe('consent_required');
  expect((await browser.open({ ...silent, login_hint: BOB.name })).outcome).toBe('login_required');
  browser.emulator.change({ forgetLogins: true });
  expect((await browser.open(silent)).outcome).toBe('login_required');
});

test('OpenID Connect Core, 3.1.2.1: prompt login asks for a login, and other values for consent at least', async () => {
  await using browser = await withBrowser();
  await browser.logIn();
  for (const prompt of ['consent', 'select_account', 'consent select_account'])
    expect((await browser.open({ prompt })).outcome, prompt).toBe('consent');
  for (const prompt of ['login', 'login consent']) {
    expect((await browser.open({ prompt })).outcome, prompt).toBe('login');
    expect(await browser.submit({ prompt }, { action: 'continue' })).toBeNull();
  }
  expect((await browser.logIn({ prompt: 'login' }))?.claims.sub).toBe('user-1');
});

test('OpenID Connect Core, 3.1.2.1: an unknown prompt, none beside another one, and a max_age that is no number are an invalid_request', async () => {
  await using browser = await withBrowser();
  for (const wrong of [{ prompt: 'create' }, { prompt: 'none login' }, { max_age: '-1' }, { max_age: 'x' }])
    expect((await browser.open(wrong)).outcome, JSON.stringify(wrong)).toBe('invalid_request');
});

test('OpenID Connect Core, 3.1.2.1: a login that is older than max_age is repeated, and auth_time tells when it was', async () => {
  await using browser = await withBrowser();
  const first = await browser.logIn();
  browser.clock.pass(60);
  expect((await browser.open({ max_age: '61' })).outcome).toBe('consent');
  const confirmed = await browser.submit({ max_age: '61' }, { action: 'continue' });
  expect(confirmed?.claims['auth_time']).toBe(first?.claims['auth_time']);
  expect((await browser.open({ max_age: '60' })).outcome).toBe('login');
  expect((await browser.open({ max_age: '60', prompt: 'none' })).outcome).toBe('login_required');
  expect(await browser.submit({ max_age: '0' }, { action: 'continue' })).toBeNull();
  const again = await browser.logIn({ max_age: '0' });
  expect(Number(again?.claims['auth_time']) - Number(first?.claims['auth_time'])).toBe(60);
});

test('OpenID Connect Core, 3.1.2.1: login_hint fills in the name, and another user who is logged in is not taken', async () => {
  await using browser = await withBrowser();
  expect((await browser.open({ login_hint: '<bob>' })).page).toContain('value="&#60;bob&#62;"');
  await browser.logIn();
  expect((await browser.open({ login_hint: ALICE.name })).outcome).toBe('consent');
  expect((await browser.open({ login_hint: 'alice@example.com' })).outcome).toBe('consent');
  const other = await browser.open({ login_hint: BOB.name });
  expect([other.outcome, other.page]).toEqual(['login', expect.stringContaining('value="bob"')]);
  browser.emulator.change({ autoLogin: true });
  const hinted = await browser.exchange(await get(browser.url({ login_hint: BOB.name })));
  expect(hinted.claims.sub).toBe('bob');
  expect((await browser.open({ prompt: 'none' })).outcome).toBe('code');
});

test('OpenID Connect Core, 3.1.2.1: id_token_hint names the user who must be logged in, and must be a token of the server', async () => {
  await using browser = await withBrowser();
  const ofBob = (await browser.logIn({}, BOB))?.id_token ?? '';
  const ofAlice = (await browser.logIn())?.id_token ?? '';
  browser.clock.pass(86_400);
  expect((await browser.open({ prompt: 'none', id_token_hint: ofAlice })).outcome).toBe('code');
  expect((await browser.open({ prompt: 'none', id_token_hint: ofBob })).outcome).toBe('login_required');
  expect((await browser.open({ id_token_hint: `${ofBob}x` })).outcome).toBe('invalid_request');
  const location = async (form: object) =>
    redirectLocation(await post(browser.url({ id_token_hint: ofBob }), { action: 'login', ...form }));
  const { username, password } = { username: ALICE.name, password: ALICE.password };
  expect(await location({ username, password })).toContain(
    'error=login_required&error_description=End-User%20authentication%20is%20required',
  );
  expect(await location({ username: BOB.name, password: BOB.password })).toContain('code=');
  const authorizeUrl = browser.url({ id_token_hint: ofBob });
  const other = await browser.emulator.login({ authorizeUrl, user: ALICE.name });
  expect(other.location).toContain('error=login_required');
});

test('RP-Initiated Logout, 2: with the ID token of the user the browser is logged out at once, and goes to the address of the client', async () => {
  await using browser = await withBrowser();
  for (const method of ['GET', 'POST']) {
    const id_token_hint = (await browser.logIn())?.id_token ?? '';
    browser.clock.pass(86_400);
    const request = { id_token_hint, post_logout_redirect_uri: GOODBYE, state: 'a b' };
    const out = method === 'GET' ? await browser.logOut(request) : await browser.logOut({}, request);
    expect([out.status, out.location]).toEqual([302, `${GOODBYE}&state=a%20b`]);
    expect(await browser.isLoggedIn()).toBe(false);
    expect((await browser.open({ prompt: 'none' })).outcome).toBe('login_required');
  }
  expect(browser.emulator.grants().every(({ revoked }) => !revoked)).toBe(true);
});

test('RP-Initiated Logout, 2: without the ID token of the user the page asks first', async () => {
  await using browser = await withBrowser();
  const ofBob = (await browser.logIn({}, BOB))?.id_token ?? '';
  await browser.logIn();
  const request = { client_id: TOOL.id, post_logout_redirect_uri: GOODBYE };
  for (const unsure of [request, {}, { ...request, id_token_hint: ofBob }]) {
    expect(await browser.logOut(unsure)).toMatchObject({ status: 200, isAsked: true });
    expect(await browser.logOut({}, unsure)).toMatchObject({ status: 200, isAsked: true });
    expect(await browser.isLoggedIn()).toBe(true);
  }
  expect((await browser.logOut(request, { action: 'logout' })).location).toBe(GOODBYE);
  expect(await browser.isLoggedIn()).toBe(false);
  expect(await browser.logOut({})).toMatchObject({ status: 200, isAsked: false });
});

test('RP-Initiated Logout, 3: an address that is not registered, and an ID token of another server or client end nothing', async () => {
  await using browser = await withBrowser();
  const id_token_hint = (await browser.logIn())?.id_token ?? '';
  await using other = await withBrowser();
  const foreign = (await other.logIn())?.id_token ?? '';
  const wrong = [
    { id_token_hint, post_logout_redirect_uri: `${GOODBYE}&` },
    { client_id: 'other', post_logout_redirect_uri: GOODBYE },
    { post_logout_redirect_uri: GOODBYE },
    { id_token_hint: foreign },
    { id_token_hint, client_id: 'other' },
  ];
  for (const request of wrong)
    expect(await browser.logOut(request), JSON.stringify(request)).toMatchObject({ status: 400, location: '' });
  expect(await browser.isLoggedIn()).toBe(true);
});
