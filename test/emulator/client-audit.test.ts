import { expect } from 'vitest';
import {
  ALICE,
  get,
  HEATER,
  obtainTokens,
  parseTokens,
  refreshTokens,
  requestConfig,
  requestTokens,
  startTestEmulator,
  stateOf,
  test,
  whoami,
} from './portal-client.ts';

test('the request log of the emulator shows endpoint, client and status, and no secret that was sent or issued', async ({
  emulator,
}) => {
  const first = await obtainTokens(emulator);
  await whoami(emulator, first.access_token);
  await requestTokens(emulator, {
    grant_type: 'refresh_token',
    refresh_token: first.refresh_token,
    scope: 'Monitoring',
  });
  await get(`${emulator.baseUrl}/nowhere`);
  expect(emulator.requests.map((entry) => [entry.endpoint, entry.method, entry.status])).toEqual([
    ['config', 'POST', 200],
    ['code/get', 'GET', 200],
    ['token', 'POST', 200],
    ['whoami', 'GET', 200],
    ['token', 'POST', 200],
    ['unknown', 'GET', 404],
  ]);
  expect(emulator.requests[4]).toMatchObject({
    time: '2031-05-05T06:07:08.000Z',
    client: HEATER.id,
    url: '/sso/token',
    form: { grant_type: 'refresh_token', scope: 'Monitoring', refresh_token: expect.stringMatching(/^#.{8}$/) },
  });
  const served = await get(`${emulator.baseUrl}/_emulator/requests`);
  const log = await served.text();
  expect((JSON.parse(log) as { requests: unknown[] }).requests.length).toBe(6);
  const secrets = [...emulator.secretsIssued(), HEATER.secret];
  expect(secrets.filter((secret) => log.includes(secret))).toEqual([]);
});

test('the emulator lists every state, code and token that it issued, so that logs can be searched for them', async ({
  emulator,
}) => {
  const first = await obtainTokens(emulator);
  const second = await parseTokens(await refreshTokens(emulator, first.refresh_token));
  expect(emulator.secretsIssued('access_token')).toEqual([first.access_token, second.access_token]);
  expect(emulator.secretsIssued('refresh_token')).toEqual([first.refresh_token, second.refresh_token]);
  expect(emulator.secretsIssued('state', 'code').length).toBe(2);
  expect(emulator.secretsIssued().length).toBe(6);
});

test('the emulator records the polls of each state with their times', async ({ emulator, clock }) => {
  const urls = await requestConfig(emulator);
  const state = stateOf(urls.code_url);
  const startedAt = clock.wall;
  await get(urls.code_url);
  clock.pass(5);
  await emulator.login({ state, user: ALICE.name });
  await get(urls.code_url);
  expect(emulator.polls(state)).toEqual([
    { at: startedAt, status: 404 },
    { at: startedAt + 5000, status: 200 },
  ]);
  expect(emulator.polls(stateOf((await requestConfig(emulator)).code_url))).toEqual([]);
});

test('the emulator counts overlapping refreshes of one grant, and not those of two grants', async () => {
  const gate = Promise.withResolvers<void>();
  let held = 0;
  const intercept = {
    received: async ({ endpoint }: { endpoint: string }) => {
      if (endpoint !== 'token' || emulator.grants().length < 2) return;
      held += 1;
      if (held === 3) gate.resolve();
      await gate.promise;
    },
  };
  await using emulator = await startTestEmulator({ intercept, refreshGrace: 1 });
  const one = await obtainTokens(emulator);
  const two = await obtainTokens(emulator);
  const responses = await Promise.all([one, one, two].map((grant) => refreshTokens(emulator, grant.refresh_token)));
  expect(responses.map((response) => response.status)).toEqual([200, 200, 200]);
  expect(emulator.observations).toEqual({
    refreshTokensRepeated: 1,
    codesRepeated: 0,
    overlappingRefreshes: 1,
    fastPolls: 0,
  });
});

test('an interceptor can drop a request before the emulator handles it, or its response afterwards', async () => {
  let lose: 'received' | 'answering' | null = null;
  await using emulator = await startTestEmulator({
    intercept: {
      received: (exchange) => (lose === 'received' ? exchange.drop() : undefined),
      answering: (exchange) => (lose === 'answering' ? exchange.drop() : undefined),
    },
  });
  const { refresh_token } = await obtainTokens(emulator);
  lose = 'received';
  await expect(refreshTokens(emulator, refresh_token)).rejects.toThrow();
  expect(emulator.grants()[0]?.generation).toBe(1);
  lose = 'answering';
  await expect(refreshTokens(emulator, refresh_token)).rejects.toThrow();
  lose = null;
  expect(emulator.grants()[0]?.generation).toBe(2);
  expect((await refreshTokens(emulator, refresh_token)).status).toBe(400);
  expect(emulator.requests.slice(-3).map((entry) => entry.status)).toEqual([null, null, 400]);
  expect(emulator.requests.at(-2)?.answer).toMatchObject({ refresh_token: expect.any(String) });
});

test("the Date header follows the emulator's clock, also in errors", async ({ emulator }) => {
  for (const path of ['/nowhere', '/%ff', '/api/whoami', '/_emulator/requests']) {
    expect((await get(emulator.baseUrl + path)).headers.get('date'), path).toBe('Mon, 05 May 2031 06:07:08 GMT');
  }
  expect((await refreshTokens(emulator, 'x')).headers.get('date')).toBe('Mon, 05 May 2031 06:07:08 GMT');
});

test('the emulator rejects an unusable option and names it', async () => {
  await expect(startTestEmulator({ port: 70_000 })).rejects.toThrow(/^port: must be .*\(found 70000\)/);
  await expect(startTestEmulator({ port: 4711, frontendPort: 4711 })).rejects.toThrow(/^frontendPort: /);
  await expect(startTestEmulator({ users: [] })).rejects.toThrow(/^users: /);
  await expect(startTestEmulator({ clients: [HEATER, HEATER] })).rejects.toThrow(/^clients: /);
});
