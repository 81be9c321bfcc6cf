import { expect } from 'vitest';
import type { Emulator } from '../../../src/emulator/index.ts';
import { refusal, StockClient, startCloud } from '../oauth2/stock-client.ts';
import {
  errorOf,
  exchangeCode,
  FakeClock,
  get,
  HEATER,
  obtainCode,
  obtainTokens,
  PUMP,
  parseTokens,
  post,
  redirectLocation,
  refreshTokens,
  requestTokens,
  startTestEmulator,
  test,
  whoami,
} from '../portal-client.ts';

const url = (emulator: Emulator) => `${emulator.frontendUrl}/sso/token`;
const credentials = { client_id: HEATER.id, client_secret: HEATER.secret };
const unknown = { grant_type: 'refresh_token', refresh_token: 'unknown' };
const basic = (pair: string) => ({ authorization: `Basic ${Buffer.from(pair).toString('base64')}` });
const encoded = (text: string) => new URLSearchParams({ text }).toString().slice('text='.length);
const good = basic(`${encoded(HEATER.id)}:${encoded(HEATER.secret)}`);

/** Requests that fail, each for another reason. */
async function failures(emulator: Emulator): Promise<Response[]> {
  return [
    await fetch(url(emulator)),
    await post(url(emulator), '{}', { 'content-type': 'application/json' }),
    await post(url(emulator), 'a=1&a=2'),
    await post(url(emulator), unknown, good),
    await post(url(emulator), { ...unknown, ...credentials }, good),
    await post(url(emulator), unknown, basic('a:b')),
    await post(url(emulator), unknown),
    await requestTokens(emulator, {}),
    await requestTokens(emulator, { grant_type: 'password' }),
    await requestTokens(emulator, { grant_type: 'authorization_code' }),
    await requestTokens(emulator, { grant_type: 'refresh_token' }),
    await requestTokens(emulator, { grant_type: 'authorization_code', code: 'x', scope: '"' }),
    await requestTokens(emulator, { grant_type: 'authorization_code', code: 'x' }),
    await requestTokens(emulator, unknown),
  ];
}

test('RFC 6749, 3.2: the token endpoint accepts POST only, and answers 405 with Allow to other methods', async ({
  emulator,
}) => {
  for (const method of ['GET', 'HEAD', 'PUT', 'PATCH', 'DELETE', 'OPTIONS']) {
    const response = await fetch(url(emulator), { method });
    expect([response.status, response.headers.get('allow')], method).toEqual([405, 'POST']);
  }
});

test('RFC 6749, 3.2: a repeated parameter is an invalid_request, and a parameter without a value counts as omitted', async () => {
  await using emulator = await startTestEmulator();
  const form = new URLSearchParams({ ...credentials, ...unknown }).toString();
  expect(await errorOf(await post(url(emulator), `${form}&refresh_token=unknown`))).toEqual([400, 'invalid_request']);
  expect(await errorOf(await post(url(emulator), `${form}&scope=&scope=`))).toEqual([400, 'invalid_request']);
  expect(await errorOf(await post(url(emulator), `${form}&code=`))).toEqual([400, 'invalid_grant']);
  const empty = await requestTokens(emulator, { grant_type: 'authorization_code', code: '' });
  expect(await errorOf(empty)).toEqual([400, 'invalid_request']);
});

test('RFC 6749, 3.2: unknown parameters are ignored', async ({ emulator }) => {
  const more = { access_type: 'offline', resource: 'x', constructor: 'x' };
  expect((await exchangeCode(emulator, await obtainCode(emulator), more)).status).toBe(200);
});

test('RFC 6749, 4.1.3: the token endpoint accepts form-encoded requests only', async ({ emulator }) => {
  const form = { ...credentials, ...unknown };
  for (const type of ['application/json', 'text/plain', 'multipart/form-data', '']) {
    const body = type === 'application/json' ? JSON.stringify(form) : new URLSearchParams(form).toString();
    const response = await post(url(emulator), body, { 'content-type': type });
    expect(await errorOf(response), type).toEqual([400, 'invalid_request']);
  }
  const type = 'APPLICATION/x-www-form-urlencoded; charset=UTF-8';
  expect(await errorOf(await post(url(emulator), form, { 'content-type': type }))).toEqual([400, 'invalid_grant']);
});

test('RFC 6749, 2.3.1: client credentials in the request address are not accepted', async ({ emulator }) => {
  const response = await post(`${url(emulator)}?${new URLSearchParams(credentials)}`, unknown);
  expect(await errorOf(response)).toEqual([401, 'invalid_client']);
});

test('RFC 6749, 2.3.1: the credentials of HTTP Basic are form-decoded after Base64', async () => {
  const secret = 'a:b +%&=ü~';
  await using emulator = await startTestEmulator({ clients: [{ ...HEATER, secret }] });
  const plus = `${HEATER.id}:${encoded(secret)}`;
  const percent = `${HEATER.id}:${encodeURIComponent(secret)}`;
  expect(plus).not.toBe(percent);
  for (const pair of [plus, percent]) {
    expect(await errorOf(await post(url(emulator), unknown, basic(pair))), pair).toEqual([400, 'invalid_grant']);
  }
  const raw = await post(url(emulator), unknown, basic(`${HEATER.id}:${secret}`));
  expect(await errorOf(raw)).toEqual([401, 'invalid_client']);
});

test('RFC 6749, 2.3: two methods of client authentication at once are an invalid_request', async ({ emulator }) => {
  const both = await post(url(emulator), { ...unknown, ...credentials }, good);
  expect(await errorOf(both)).toEqual([400, 'invalid_request']);
  const otherId = await post(url(emulator), { ...unknown, client_id: PUMP.id }, good);
  expect(await errorOf(otherId)).toEqual([400, 'invalid_request']);
  const sameId = await post(url(emulator), { ...unknown, client_id: HEATER.id }, good);
  expect(await errorOf(sameId)).toEqual([400, 'invalid_grant']);
});

test('RFC 6749, 4.1.2: a code is valid once, and its second use revokes the tokens issued for the first', async () => {
  await using emulator = await startTestEmulator();
  const code = await obtainCode(emulator);
  const first = await parseTokens(await exchangeCode(emulator, code));
  const second = await parseTokens(await refreshTokens(emulator, first.refresh_token));
  expect(await errorOf(await exchangeCode(emulator, code))).toEqual([400, 'invalid_grant']);
  expect((await whoami(emulator, first.access_token)).status).toBe(401);
  expect((await whoami(emulator, second.access_token)).status).toBe(401);
  expect((await refreshTokens(emulator, second.refresh_token)).status).toBe(400);
});

test('RFC 6749, 4.1.2: a code expires within minutes', async ({ emulator, clock }) => {
  const code = await obtainCode(emulator);
  clock.pass(45);
  expect(await errorOf(await exchangeCode(emulator, code))).toEqual([400, 'invalid_grant']);
});

test('RFC 6749, 4.1.3: a code is bound to its client, and an attempt by another client does not use it up', async ({
  emulator,
}) => {
  const code = await obtainCode(emulator);
  const stolen = await requestTokens(emulator, { grant_type: 'authorization_code', code }, PUMP);
  expect(await errorOf(stolen)).toEqual([400, 'invalid_grant']);
  expect((await exchangeCode(emulator, code)).status).toBe(200);
});

test('RFC 6749, 4.1.3: a redirect_uri that differs from the one in the authorization request is refused', async () => {
  const tool = 'http://127.0.0.1:53682/';
  await using emulator = await startTestEmulator({ clients: [{ ...HEATER, redirectUris: [tool] }], autoLogin: true });
  const query = new URLSearchParams({ response_type: 'code', client_id: HEATER.id, redirect_uri: tool });
  const landed = new URL(redirectLocation(await get(`${emulator.frontendUrl}/sso/authorize?${query}`)));
  const code = landed.searchParams.get('code') ?? '';
  for (const redirect_uri of ['http://127.0.0.1:53682', `${tool}?`, 'http://127.0.0.1:1/']) {
    expect(await errorOf(await exchangeCode(emulator, code, { redirect_uri }))).toEqual([400, 'invalid_grant']);
  }
  expect((await exchangeCode(emulator, code, { redirect_uri: tool })).status).toBe(200);
});

test('RFC 6749, 4.1.3: the client is authenticated first, so that a refused attempt uses up no code or refresh token', async () => {
  await using emulator = await startTestEmulator({ onReuse: 'revoke-family' });
  const attempts: [Record<string, string>, Record<string, string>][] = [
    [{}, {}],
    [{ client_id: HEATER.id }, {}],
    [{ client_id: HEATER.id, client_secret: 'wrong' }, {}],
    [{ client_id: 'nobody', client_secret: HEATER.secret }, {}],
    [{ client_id: PUMP.id, client_secret: HEATER.secret }, {}],
    [{}, basic(`${HEATER.id}:wrong`)],
    [{}, basic('no colon')],
    [{}, basic('%zz:%')],
    [{}, { authorization: 'Basic %%%' }],
    [{}, { authorization: 'Bearer x' }],
  ];
  const expectRejected = async (form: Record<string, string>) => {
    for (const [more, headers] of attempts) {
      const response = await post(url(emulator), { ...form, ...more }, headers);
      expect(await errorOf(response), JSON.stringify([more, headers])).toEqual([401, 'invalid_client']);
    }
  };
  const code = await obtainCode(emulator);
  await expectRejected({ grant_type: 'authorization_code', code });
  const { refresh_token } = await parseTokens(await exchangeCode(emulator, code));
  await expectRejected({ grant_type: 'refresh_token', refresh_token });
  expect((await refreshTokens(emulator, refresh_token)).status).toBe(200);
});

test('RFC 6749, 5.1: a token response is JSON with access_token, token_type, expires_in and refresh_token', async () => {
  await using emulator = await startTestEmulator();
  const response = await exchangeCode(emulator, await obtainCode(emulator), { scope: 'Monitoring' });
  expect([response.status, response.headers.get('content-type')]).toEqual([
    200,
    expect.stringMatching(/^application\/json\b/),
  ]);
  expect(await response.json()).toEqual({
    access_token: expect.stringMatching(/^[\w.~+/-]+=*$/),
    token_type: 'bearer',
    expires_in: 3600,
    refresh_token: expect.stringMatching(/^[\x20-\x7E]+$/),
    scope: 'Monitoring',
  });
});

test('RFC 6749, 5.1: responses and errors carry Cache-Control no-store and Pragma no-cache', async () => {
  await using emulator = await startTestEmulator();
  const responses = [await exchangeCode(emulator, await obtainCode(emulator)), ...(await failures(emulator))];
  for (const response of responses) {
    const headers = [response.headers.get('cache-control'), response.headers.get('pragma')];
    expect(headers, String(response.status)).toEqual(['no-store', 'no-cache']);
  }
});

test('RFC 6749, 5.2: errors are 400 with JSON, except for a client that is not authenticated, which gets 401', async () => {
  await using emulator = await startTestEmulator();
  const [, ...posted] = await failures(emulator);
  const errors = await Promise.all(posted.map(errorOf));
  expect(errors).toEqual([
    [400, 'invalid_request'],
    [400, 'invalid_request'],
    [400, 'invalid_grant'],
    [400, 'invalid_request'],
    [401, 'invalid_client'],
    [401, 'invalid_client'],
    [400, 'invalid_request'],
    [400, 'unsupported_grant_type'],
    [400, 'invalid_request'],
    [400, 'invalid_request'],
    [400, 'invalid_scope'],
    [400, 'invalid_grant'],
    [400, 'invalid_grant'],
  ]);
  for (const response of posted) expect(response.headers.get('content-type')).toMatch(/^application\/json\b/);
});

test('RFC 6749, 5.2: WWW-Authenticate names the scheme if the client used the Authorization header', async () => {
  await using emulator = await startTestEmulator();
  const challenge = async (headers: Record<string, string>) =>
    (await post(url(emulator), unknown, headers)).headers.get('www-authenticate');
  expect(await challenge(basic('a:b'))).toMatch(/^Basic realm="/);
  expect(await challenge({ authorization: 'Bearer x' })).toMatch(/^Basic realm="/);
  expect(await challenge({})).toBeNull();
  emulator.change({ basic: 'refuse' });
  expect((await post(url(emulator), unknown, good)).status).toBe(401);
});

test('RFC 6749, 5.2: error_description contains only the permitted characters', async ({ emulator }) => {
  const described = (await failures(emulator)).filter((response) => response.status !== 405);
  for (const response of described) {
    const { error_description } = (await response.json()) as { error_description: unknown };
    expect(error_description).toMatch(/^[\x20\x21\x23-\x5B\x5D-\x7E]+$/);
  }
});

test('RFC 6749, 6: a refresh token is bound to its client', async () => {
  await using emulator = await startTestEmulator({ onReuse: 'revoke-family' });
  const first = await obtainTokens(emulator);
  const second = await parseTokens(await refreshTokens(emulator, first.refresh_token));
  for (const { refresh_token } of [first, second]) {
    expect(await errorOf(await refreshTokens(emulator, refresh_token, PUMP))).toEqual([400, 'invalid_grant']);
  }
  expect((await refreshTokens(emulator, second.refresh_token)).status).toBe(200);
  expect(emulator.observations.refreshTokensRepeated).toBe(0);
});

test('RFC 6749, 6: a refresh never widens the scope', async ({ emulator }) => {
  const { refresh_token } = await obtainTokens(emulator, { scope: 'Monitoring' });
  const form = { grant_type: 'refresh_token', refresh_token, scope: 'Monitoring RemoteControl' };
  expect((await parseTokens(await requestTokens(emulator, form))).scope).toBe('Monitoring');
});

test('RFC 6749, 6: at /oauth2/ a refresh may narrow the scope of its access token, and no other scope is accepted', async () => {
  for (const accessTokenFormat of ['opaque', 'jwt'] as const) {
    await using cloud = await startCloud({ accessTokenFormat, refreshGraceTime: 60 });
    const stock = await StockClient.discover(cloud);
    const { refresh_token } = await stock.obtainTokens('openid read write');
    for (const scope of ['read admin', 'read  write'])
      await expect(stock.refresh(refresh_token, { scope })).rejects.toMatchObject(refusal('invalid_scope'));
    const narrow = await stock.refresh(refresh_token, { scope: 'read' });
    expect(narrow).toMatchObject({ scope: 'read' });
    expect(narrow).not.toHaveProperty('id_token');
    expect(await (await stock.whoami(narrow.access_token)).json()).toMatchObject({ scope: 'read' });
    const inspected = async (token = '') => (await stock.introspect(token)).scope;
    expect(await inspected(narrow.access_token)).toBe('read');
    expect(await inspected(narrow.refresh_token)).toBe('openid read write');
    expect(await stock.refresh(refresh_token, { scope: 'write' })).toMatchObject({ scope: 'write' });
    expect(await stock.refresh(narrow.refresh_token)).toMatchObject({ scope: 'openid read write' });
  }
});

test('RFC 9700, 4.14.2: each refresh replaces the refresh token, and the old one is refused', async ({ emulator }) => {
  const first = await obtainTokens(emulator);
  const second = await parseTokens(await refreshTokens(emulator, first.refresh_token));
  expect(second.refresh_token).not.toBe(first.refresh_token);
  expect(await errorOf(await refreshTokens(emulator, first.refresh_token))).toEqual([400, 'invalid_grant']);
});

test('RFC 9700, 4.14.2: with revoke-family the reuse of a refresh token revokes all tokens of its grant', async () => {
  await using emulator = await startTestEmulator({ onReuse: 'revoke-family' });
  const first = await obtainTokens(emulator);
  const second = await parseTokens(await refreshTokens(emulator, first.refresh_token));
  await refreshTokens(emulator, first.refresh_token);
  expect(await errorOf(await refreshTokens(emulator, second.refresh_token))).toEqual([400, 'invalid_grant']);
  expect((await whoami(emulator, second.access_token)).status).toBe(401);
});

test('RFC 9700, 4.14.2: refresh tokens expire if they are not used for a while', async () => {
  const clock = new FakeClock();
  await using emulator = await startTestEmulator({ clock, refreshLifetime: 100 });
  const { refresh_token } = await obtainTokens(emulator);
  clock.pass(100);
  expect(await errorOf(await refreshTokens(emulator, refresh_token))).toEqual([400, 'invalid_grant']);
});
