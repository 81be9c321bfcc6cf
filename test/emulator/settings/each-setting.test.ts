import { brotliDecompressSync, gunzipSync, inflateSync } from 'node:zlib';
import * as oauth from 'openid-client';
import { request } from 'undici';
import { expect } from 'vitest';
import type { Emulator, EmulatorOptions } from '../../../src/emulator/index.ts';
import {
  ALICE,
  FakeClock,
  get,
  HEATER,
  obtainCode,
  PUMP,
  parseTokens,
  postConfig,
  refreshTokens,
  requestConfig,
  requestTokens,
  startTestEmulator,
  stateOf,
  test,
  whoami,
} from '../portal-client.ts';

/** Unmodified openid-client. The helper endpoints, which no stock client knows, are called with plain fetch. */
function stock(emulator: Emulator, authentication = oauth.ClientSecretPost(HEATER.secret)): oauth.Configuration {
  const server = {
    issuer: emulator.frontendUrl,
    authorization_endpoint: `${emulator.frontendUrl}/sso/authorize`,
    token_endpoint: `${emulator.frontendUrl}/sso/token`,
  };
  const client = new oauth.Configuration(server, HEATER.id, {}, authentication);
  oauth.allowInsecureRequests(client);
  return client;
}

/** openid-client's code exchange; it rejects null as a scope. */
function exchange(client: oauth.Configuration, code: string) {
  const landed = new URL(`http://127.0.0.1/callback?code=${code}`);
  return oauth.authorizationCodeGrant(client, landed, {}, { scope: 'Monitoring' });
}

/** A client and the tokens of a first login. */
async function loggedIn(emulator: Emulator) {
  const client = stock(emulator);
  const first = await exchange(client, await obtainCode(emulator));
  const refresh = (token = first.refresh_token ?? '') => oauth.refreshTokenGrant(client, token);
  return { client, first, refresh };
}

const refused = (status: number, error: string) => ({ name: 'ResponseBodyError', status, error });
const dead = refused(400, 'invalid_grant');

test('stateLifetime: a link is valid until its lifetime is over', async () => {
  const clock = new FakeClock();
  await using emulator = await startTestEmulator({ clock, stateLifetime: 60 });
  const [inTime, late] = [await requestConfig(emulator), await requestConfig(emulator)];
  clock.pass(59);
  await emulator.login({ state: stateOf(inTime.code_url), user: ALICE.name });
  const { code } = (await (await get(inTime.code_url)).json()) as { code: string };
  expect((await exchange(stock(emulator), code)).token_type).toBe('bearer');
  clock.pass(1);
  expect((await get(late.authorize_url)).status).toBe(400);
});

test('tokenLifetime: the token response gives the lifetime of its access token', async () => {
  const clock = new FakeClock();
  await using emulator = await startTestEmulator({ clock, tokenLifetime: 120 });
  const { first } = await loggedIn(emulator);
  expect([first.expires_in, first.expiresIn()]).toEqual([
    120,
    expect.toSatisfy((left) => left === 120 || left === 119),
  ]);
  clock.pass(120);
  expect((await whoami(emulator, first.access_token)).status).toBe(401);
});

test('grantLifetime: a grant ends when its lifetime is over, however often it was refreshed', async () => {
  const clock = new FakeClock();
  await using emulator = await startTestEmulator({ clock, grantLifetime: 100 });
  const { refresh } = await loggedIn(emulator);
  clock.pass(60);
  const second = await refresh();
  clock.pass(39);
  const third = await refresh(second.refresh_token);
  clock.pass(1);
  await expect(refresh(third.refresh_token)).rejects.toMatchObject(dead);
  expect((await whoami(emulator, third.access_token)).status).toBe(200);
});

test('loginLifetime: the grant and its access tokens end that long after the login, and responses say when', async () => {
  const clock = new FakeClock();
  await using emulator = await startTestEmulator({ clock, loginLifetime: 5000 });
  const { first, refresh } = await loggedIn(emulator);
  expect([first.expires_in, first['refresh_token_expires_in']]).toEqual([3600, 5000]);
  clock.pass(3000);
  const second = await refresh();
  expect([second.expires_in, second['refresh_token_expires_in']]).toEqual([2000, 2000]);
  clock.pass(1000);
  const third = await refresh(second.refresh_token);
  expect([third.expires_in, third['refresh_token_expires_in']]).toEqual([1000, 1000]);
  expect(emulator.findings().earlyRefreshes).toEqual([]);
  emulator.advance(999);
  expect((await whoami(emulator, third.access_token)).status).toBe(200);
  emulator.advance(1);
  expect((await whoami(emulator, third.access_token)).status).toBe(401);
  await expect(refresh(third.refresh_token)).rejects.toMatchObject(dead);
  emulator.change({ loginLifetime: null });
  expect((await refresh(third.refresh_token))['refresh_token_expires_in']).toBeUndefined();
});

test('refreshGrace: a used refresh token gets new tokens for the given number of further generations', async () => {
  await using emulator = await startTestEmulator({ refreshGrace: 1 });
  const { refresh } = await loggedIn(emulator);
  const [second, third] = [await refresh(), await refresh()];
  expect(third.refresh_token).not.toBe(second.refresh_token);
  await expect(refresh()).rejects.toMatchObject(dead);
});

test('refreshGraceTime: a used refresh token gets the same tokens again, with the true expires_in', async () => {
  const clock = new FakeClock();
  await using emulator = await startTestEmulator({ clock, refreshGraceTime: 30, onReuse: 'revoke-family' });
  const { refresh } = await loggedIn(emulator);
  const second = await refresh();
  clock.pass(29.5);
  const again = await refresh();
  expect([again.access_token, again.refresh_token]).toEqual([second.access_token, second.refresh_token]);
  expect([second.expires_in, again.expires_in]).toEqual([3600, 3570]);
  expect(emulator.grants()[0]?.generation).toBe(2);
  clock.pass(0.5);
  await expect(refresh()).rejects.toMatchObject(dead);
  await expect(refresh(second.refresh_token)).rejects.toMatchObject(dead);
});

test('refreshEndsAccessToken: a refresh ends the former access token at once, or it stays valid', async ({
  emulator,
}) => {
  const { first, refresh } = await loggedIn(emulator);
  const second = await refresh();
  expect((await whoami(emulator, first.access_token)).status).toBe(200);
  emulator.change({ refreshEndsAccessToken: true });
  const third = await refresh(second.refresh_token);
  const status = async (token: string) => (await whoami(emulator, token)).status;
  expect(await Promise.all([first, second, third].map((one) => status(one.access_token)))).toEqual([401, 401, 200]);
  await expect(refresh(second.refresh_token)).rejects.toMatchObject(dead);
  expect(await status(third.access_token)).toBe(200);
});

test('oneLoginPerUser: a new login ends the older grants of the same user and client, and no others', async () => {
  const bob = { name: 'bob', password: 'bob' };
  await using emulator = await startTestEmulator({ users: [ALICE, bob] });
  const logIn = async (user: string, client = HEATER) => {
    const { code_url } = await requestConfig(emulator, undefined, client.id);
    await emulator.login({ state: stateOf(code_url), user });
    const { code } = (await (await get(code_url)).json()) as { code: string };
    const form = { grant_type: 'authorization_code', code };
    return { client, ...(await parseTokens(await requestTokens(emulator, form, client))) };
  };
  const former = await logIn('alice');
  const older = [await logIn('alice'), await logIn('bob'), await logIn('alice', { ...PUMP, name: 'Pump' })];
  expect((await whoami(emulator, former.access_token)).status).toBe(200);
  emulator.change({ oneLoginPerUser: true });
  const newest = await logIn('alice');
  const all = [former, ...older, newest];
  const valid = await Promise.all(all.map(async (one) => (await whoami(emulator, one.access_token)).status));
  expect(valid).toEqual([401, 401, 200, 200, 200]);
  const refreshed = all.map(async (one) => (await refreshTokens(emulator, one.refresh_token, one.client)).status);
  expect(await Promise.all(refreshed)).toEqual([400, 400, 200, 200, 200]);
});

test.for<[string, EmulatorOptions, number, boolean]>([
  ['and the other is answered the same', { refreshGraceTime: 10 }, 2, false],
  ['and the other is refused', {}, 1, false],
  ['and the other revokes the family', { onReuse: 'revoke-family' }, 1, true],
])('one of two simultaneous refreshes with one token wins, %s', async ([, options, winners, revoked]) => {
  const gate = Promise.withResolvers<void>();
  let refreshing = 0;
  const intercept = {
    async received() {
      if (emulator.grants().length === 0) return;
      refreshing += 1;
      if (refreshing === 2) gate.resolve();
      await gate.promise;
    },
  };
  await using emulator = await startTestEmulator({ ...options, intercept });
  const { refresh } = await loggedIn(emulator);
  const outcomes = await Promise.allSettled([refresh(), refresh()]);
  const winningTokens = outcomes.flatMap((outcome) =>
    outcome.status === 'fulfilled' ? [outcome.value.refresh_token] : [],
  );
  const lost = outcomes.flatMap((outcome) => (outcome.status === 'rejected' ? [outcome.reason as unknown] : []));
  expect([winningTokens.length, new Set(winningTokens).size]).toEqual([winners, 1]);
  for (const reason of lost) expect(reason).toMatchObject(dead);
  expect(emulator.grants()).toMatchObject([{ generation: 2, revoked }]);
});

test('codeUrlAfterExchange: after the exchange code_url answers 404, or returns the code that is no longer valid', async () => {
  await using emulator = await startTestEmulator({ codeUrlAfterExchange: 'served' });
  const { code_url } = await requestConfig(emulator);
  await emulator.login({ state: stateOf(code_url), user: ALICE.name });
  const poll = () => get(code_url);
  const { code } = (await (await poll()).json()) as { code: string };
  await exchange(stock(emulator), code);
  expect(await (await poll()).json()).toEqual({ code });
  await expect(exchange(stock(emulator), code)).rejects.toMatchObject(dead);
  emulator.change({ codeUrlAfterExchange: 'gone' });
  expect((await poll()).status).toBe(404);
});

test.for(['json', 'html', 'empty'] as const)(
  'errorBody: the response to a refused refresh has the body type %s',
  async (errorBody) => {
    await using emulator = await startTestEmulator({ errorBody });
    const notJson = { code: 'OAUTH_RESPONSE_IS_NOT_JSON' };
    const failed = oauth.refreshTokenGrant(stock(emulator), 'unknown');
    await expect(failed).rejects.toMatchObject(errorBody === 'json' ? dead : notJson);
    const types = { json: /^application\/json/, html: /^text\/html/, empty: /^$/ };
    for (const url of [`${emulator.baseUrl}/nowhere`, `${emulator.baseUrl}/%ff`, `${emulator.baseUrl}/api/whoami`]) {
      const response = await get(url);
      expect(response.headers.get('content-type') ?? '', url).toMatch(types[errorBody]);
      if (errorBody === 'empty') expect(await response.text()).toBe('');
      expect((await fetch(url, { method: 'HEAD' })).status, `HEAD ${url}`).toBe(response.status);
    }
    expect((await get(`${emulator.frontendUrl}/sso/authorize`)).headers.get('content-type')).toMatch(types.html);
    expect((await get(`${emulator.consoleUrl}settings`)).headers.get('content-type')).toMatch(types.json);
  },
);

test.for([
  ['gzip', gunzipSync],
  ['deflate', inflateSync],
  ['br', brotliDecompressSync],
] as const)(
  'contentEncoding: responses, errors and faults are compressed with %s although nobody asked',
  async ([contentEncoding, decompress]) => {
    await using emulator = await startTestEmulator({ contentEncoding });
    const fetchPlain = async (url: string, method: 'GET' | 'POST' = 'GET') => {
      const { statusCode, headers, body } = await request(url, { method, headers: { 'accept-encoding': 'identity' } });
      const bytes = Buffer.from(await body.arrayBuffer());
      return { statusCode, encoding: headers['content-encoding'], bytes };
    };
    const discovery = `${emulator.frontendUrl}/.well-known/openid-configuration`;
    const { encoding, bytes } = await fetchPlain(discovery);
    expect(encoding).toBe(contentEncoding);
    expect(JSON.parse(String(decompress(bytes)))).toMatchObject({ issuer: emulator.frontendUrl });
    const refused = await fetchPlain(`${emulator.frontendUrl}/oauth2/token`, 'POST');
    expect([refused.statusCode, String(decompress(refused.bytes))]).toEqual([
      ...[400, expect.stringContaining('invalid_request')],
    ]);
    emulator.addFault({ kind: 'status', endpoint: 'discovery', status: 403, body: '<h1>No</h1>' });
    const faulty = await fetchPlain(discovery);
    expect([faulty.statusCode, String(decompress(faulty.bytes))]).toEqual([403, '<h1>No</h1>']);
    expect((await fetchPlain(`${emulator.consoleUrl}settings`)).encoding).toBeUndefined();
  },
);

test('requireUserAgent: a request without User-Agent gets a 403 with a web page, and has no effect', async () => {
  await using emulator = await startTestEmulator();
  const { refresh } = await loggedIn(emulator);
  emulator.change({ requireUserAgent: true });
  const { statusCode, headers, body } = await request(`${emulator.frontendUrl}/sso/token`, { method: 'POST' });
  expect([statusCode, headers['content-type'], await body.text()]).toEqual([
    ...[403, 'text/html; charset=utf-8', expect.stringContaining('403 Forbidden')],
  ]);
  expect((await request(`${emulator.consoleUrl}settings`)).statusCode).toBe(200);
  expect((await refresh()).token_type).toBe('bearer');
  expect(emulator.findings().failedAuthentications).toEqual([]);
});

test('rateLimit: too many requests of one kind get 429 with Retry-After, and use up no token', async () => {
  const clock = new FakeClock();
  await using emulator = await startTestEmulator({ clock });
  const { refresh } = await loggedIn(emulator);
  emulator.change({ rateLimit: 2, rateLimitWindow: 10 });
  const second = await refresh();
  clock.pass(3.5);
  const third = await refresh(second.refresh_token);
  const reason: unknown = await refresh(third.refresh_token).catch((error: unknown) => error);
  expect(reason).toMatchObject(refused(429, 'too_many_requests'));
  const limited = await fetch(`${emulator.frontendUrl}/sso/token`, {
    method: 'POST',
    body: new URLSearchParams({ client_id: HEATER.id }),
  });
  expect([limited.status, limited.headers.get('retry-after')]).toEqual([429, '7']);
  expect((await whoami(emulator, third.access_token)).status).toBe(200);
  expect((await postConfig(emulator)).status).toBe(200);
  clock.pass(6.5);
  expect((await refresh(third.refresh_token)).token_type).toBe('bearer');
});
