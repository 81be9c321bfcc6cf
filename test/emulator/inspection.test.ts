import { expect } from 'vitest';
import type { Emulator } from '../../src/emulator/index.ts';
import {
  ALICE,
  exchangeCode,
  FakeClock,
  get,
  HEATER,
  obtainCode,
  obtainTokens,
  PUMP,
  parseTokens,
  post,
  refreshTokens,
  requestConfig,
  requestEmulatorApi,
  requestTokens,
  startTestEmulator,
  stateOf,
  test,
  whoami,
} from './portal-client.ts';

async function read(emulator: Emulator, path: string): Promise<Record<string, unknown>> {
  return (await (await get(emulator.consoleUrl + path)).json()) as Record<string, unknown>;
}

test('the emulator numbers its requests, and lists those after a given number', async ({ emulator }) => {
  await obtainTokens(emulator);
  const numbers = emulator.requests.map((entry) => entry.number);
  expect(numbers).toEqual([1, 2, 3]);
  const { requests } = (await read(emulator, 'requests?since=1')) as { requests: { number: number }[] };
  expect(requests.map((entry) => entry.number)).toEqual([2, 3]);
  for (const since of ['x', '-1', '1.5']) {
    const response = await get(`${emulator.consoleUrl}requests?since=${since}`);
    expect([response.status, await response.json()], since).toEqual([
      400,
      { error: 'invalid_request', message: expect.stringMatching(/^since: must be a whole number /) },
    ]);
  }
});

test('the request log of the emulator shows responses beside requests, with their secrets masked in the same way', async ({
  emulator,
}) => {
  const urls = await requestConfig(emulator, 'http://127.0.0.1:1/callback');
  await post(urls.authorize_url, { username: ALICE.name, password: ALICE.password });
  await exchangeCode(emulator, await obtainCode(emulator));
  const [configured, loggedIn, , polled, exchanged] = emulator.requests;
  const mask = expect.stringMatching(/^#[\w-]{8}$/);
  expect(configured?.answer).toEqual({
    authorize_url: expect.stringMatching(/\/sso\/authorize\?response_type=code&client_id=.*&state=#[\w-]{8}$/),
    code_url: expect.stringMatching(/\?state=#[\w-]{8}$/),
    accesstoken_request_url: urls.accesstoken_request_url,
  });
  expect(loggedIn?.answer).toEqual({ location: expect.stringMatching(/\?code=#[\w-]{8}&state=#[\w-]{8}$/) });
  expect(exchanged?.answer).toEqual({
    access_token: mask,
    expires_in: 3600,
    token_type: 'bearer',
    scope: null,
    refresh_token: mask,
  });
  expect(polled?.answer).toEqual({ code: exchanged?.form['code'] });
});

test('the request log of the emulator shows a URL as it was sent, without adding a slash', async ({ emulator }) => {
  await get(`${emulator.frontendUrl}/.well-known/openid-configuration`);
  expect(emulator.requests[0]?.answer).toMatchObject({
    issuer: emulator.frontendUrl,
    token_endpoint: `${emulator.frontendUrl}/oauth2/token`,
  });
});

test('the request log of the emulator shows the media type of a body that is no form', async ({ emulator }) => {
  const headers = { 'content-type': 'application/json; charset=utf-8' };
  await fetch(`${emulator.frontendUrl}/oauth2/token`, { method: 'POST', headers, body: '{}' });
  await get(`${emulator.frontendUrl}/oauth2/jwks`);
  expect(emulator.requests.map(({ media }) => media)).toEqual(['application/json', undefined]);
});

test('the request log of the emulator shows secrets unmasked with showSecrets', async () => {
  await using emulator = await startTestEmulator({ showSecrets: true });
  const code = await obtainCode(emulator);
  const { access_token, refresh_token } = await parseTokens(await exchangeCode(emulator, code));
  const [, polled, exchanged] = emulator.requests;
  expect(polled?.answer).toEqual({ code });
  expect(exchanged?.form).toMatchObject({ code, client_secret: HEATER.secret });
  expect(exchanged?.answer).toMatchObject({ access_token, refresh_token });
});

test('a login is listed as waiting from the opening of its page until it succeeds, is refused or the link expires', async () => {
  const clock = new FakeClock();
  await using emulator = await startTestEmulator({ clock });
  const [one, two, three] = [
    await requestConfig(emulator),
    await requestConfig(emulator),
    await requestConfig(emulator),
  ];
  expect(emulator.logins()).toEqual([]);
  for (const { authorize_url } of [one, two, three]) await get(authorize_url);
  const waiting = emulator.logins();
  expect(await read(emulator, 'logins')).toEqual({ logins: waiting });
  expect(waiting).toEqual(
    [1, 2, 3].map(() => ({
      state: expect.any(String),
      client: HEATER.id,
      opened: '2031-05-05T06:07:08.000Z',
      expires: '2031-05-05T06:37:08.000Z',
    })),
  );
  await emulator.login({ state: waiting[0]?.state ?? '', user: ALICE.name });
  expect((await get(one.code_url)).status).toBe(200);
  await get((await post(two.authorize_url, { action: 'refuse' })).headers.get('location') ?? '');
  expect(emulator.logins()).toEqual(waiting.slice(2));
  clock.pass(1800);
  expect(emulator.logins()).toEqual([]);
});

test("the emulator's API lists grants without tokens, and can revoke them", async ({ emulator, clock }) => {
  const first = await obtainTokens(emulator, { scope: 'Monitoring' });
  clock.pass(60);
  const second = await parseTokens(await refreshTokens(emulator, first.refresh_token));
  const { grants } = (await read(emulator, 'grants')) as { grants: { id: string }[] };
  const id = grants[0]?.id ?? '';
  const listed = {
    id,
    client: HEATER.id,
    user: 'alice',
    scope: 'Monitoring',
    generation: 2,
    issued: '2031-05-05T06:07:08.000Z',
    refreshed: '2031-05-05T06:08:08.000Z',
    revoked: false,
  };
  expect(grants).toEqual([listed]);
  const wrong = await requestEmulatorApi(emulator, 'POST', `grants/${id}/revoke`, { what: 'all' });
  expect([wrong.status, await wrong.text()]).toEqual([400, expect.stringContaining('what: must be ')]);
  expect((await requestEmulatorApi(emulator, 'POST', 'grants/unknown/revoke', {})).status).toBe(404);
  const access = await requestEmulatorApi(emulator, 'POST', `grants/${id}/revoke`, { what: 'access_tokens' });
  expect([access.status, await access.json()]).toEqual([200, listed]);
  expect((await whoami(emulator, second.access_token)).status).toBe(401);
  expect(await (await requestEmulatorApi(emulator, 'POST', `grants/${id}/revoke`, {})).json()).toEqual({
    ...listed,
    revoked: true,
  });
  expect((await refreshTokens(emulator, second.refresh_token)).status).toBe(400);
});

const NOTHING = {
  reusedRefreshTokens: [],
  repeatedCodes: [],
  overlappingRefreshes: [],
  earlyRefreshes: [],
  failedAuthentications: [],
  fastPolls: [],
};

test('the emulator finds only the polls of a client that does nothing wrong', async ({ emulator, clock }) => {
  const { code_url } = await requestConfig(emulator);
  for (const seconds of [5, 6, 10]) {
    expect((await get(code_url)).status).toBe(404);
    clock.pass(seconds);
  }
  await emulator.login({ state: stateOf(code_url), user: ALICE.name });
  const { code } = (await (await get(code_url)).json()) as { code: string };
  const first = await parseTokens(await exchangeCode(emulator, code));
  await get(code_url);
  clock.pass(1800);
  const second = await parseTokens(await refreshTokens(emulator, first.refresh_token));
  emulator.revoke(emulator.grants()[0]?.id ?? '', 'access_tokens');
  expect((await refreshTokens(emulator, second.refresh_token)).status).toBe(200);
  const { polls, ...others } = emulator.findings();
  expect(others).toEqual(NOTHING);
  expect(polls).toEqual([
    {
      client: HEATER.id,
      state: expect.any(String),
      count: 5,
      shortestInterval: 0,
      medianInterval: 6,
      longestInterval: 10,
      afterCode: 1,
      message: expect.stringMatching(
        /^The code_url was polled 5 times, every 6 s \(0 to 10 s\); once after it had returned/,
      ),
    },
  ]);
});

test('the emulator counts what a client does wrong by grant and client, and describes it in a sentence', async () => {
  const clock = new FakeClock();
  await using emulator = await startTestEmulator({ clock });
  const code = await obtainCode(emulator);
  const first = await parseTokens(await exchangeCode(emulator, code));
  clock.pass(2);
  await refreshTokens(emulator, first.refresh_token);
  await refreshTokens(emulator, first.refresh_token);
  await exchangeCode(emulator, code);
  await requestTokens(emulator, { grant_type: 'refresh_token' }, { ...PUMP, secret: 'wrong' });
  await requestTokens(emulator, { grant_type: 'refresh_token' }, { id: 'nobody', secret: 'wrong' });
  const grant = emulator.grants()[0]?.id ?? '';
  const found = { client: HEATER.id, grant, count: 1, message: expect.stringMatching(/, once[,:.;]/) };
  const { polls: _, ...others } = emulator.findings();
  expect(others).toEqual({
    reusedRefreshTokens: [found],
    repeatedCodes: [found],
    overlappingRefreshes: [],
    earlyRefreshes: [{ ...found, earliest: 2 }],
    failedAuthentications: [PUMP.id, null].map((client) => ({
      client,
      way: 'form',
      count: 1,
      message: expect.stringMatching(/^Client authentication failed/),
    })),
    fastPolls: [],
  });
  expect(await read(emulator, 'findings')).toMatchObject({
    reused_refresh_tokens: [{ grant, count: 1 }],
    early_refreshes: [{ earliest: 2 }],
    polls: [{ after_code: 0 }],
  });
});
