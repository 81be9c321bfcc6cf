import { expect } from 'vitest';
import {
  errorOf,
  exchange,
  get,
  obtainCode,
  obtainTokens,
  PUMP,
  refresh,
  start,
  test,
  tokens,
  whoami,
} from '../portal-client.ts';

test('a reused refresh token takes its family with it when told to, even hundreds of generations later', async () => {
  await using emulator = await start({ onReuse: 'revoke-family' });
  const first = await obtainTokens(emulator);
  let latest = first;
  for (let i = 0; i < 200; i += 1) latest = await tokens(await refresh(emulator, latest.refresh_token));
  expect((await refresh(emulator, first.refresh_token)).status).toBe(400);
  expect((await refresh(emulator, latest.refresh_token)).status).toBe(400);
  expect((await whoami(emulator, latest.access_token)).status).toBe(401);
  expect(emulator.grants()).toMatchObject([{ generation: 201, revoked: true }]);
  expect(emulator.observations.refreshTokensRepeated).toBe(1);
});

test('another client with a refresh token gets nothing and harms nothing', async () => {
  await using emulator = await start({ onReuse: 'revoke-family' });
  const first = await obtainTokens(emulator);
  await refresh(emulator, first.refresh_token).then(tokens);
  expect(await errorOf(await refresh(emulator, first.refresh_token, PUMP))).toEqual([400, 'invalid_grant']);
  expect((await whoami(emulator, first.access_token)).status).toBe(200);
  expect(emulator.observations.refreshTokensRepeated).toBe(0);
});

test('access and refresh tokens are not interchangeable, nor can they be altered', async ({ emulator }) => {
  const { access_token, refresh_token } = await obtainTokens(emulator);
  expect((await whoami(emulator, refresh_token)).status).toBe(401);
  expect((await refresh(emulator, access_token)).status).toBe(400);
  expect((await refresh(emulator, refresh_token.replace('.1.', '.2.'))).status).toBe(400);
  expect((await refresh(emulator, `${refresh_token}.`)).status).toBe(400);
});

test('whoami says who a token is for, and how to come with a good one', async ({ emulator }) => {
  const { access_token } = await obtainTokens(emulator, { scope: 'Monitoring' });
  expect(await (await whoami(emulator, access_token)).json()).toEqual({ user: 'alice', scope: 'Monitoring' });
  const none = await get(`${emulator.baseUrl}/api/whoami`);
  expect([none.status, none.headers.get('www-authenticate')]).toEqual([401, 'Bearer realm="portal"']);
  const bad = await whoami(emulator, 'nonsense');
  expect([bad.status, bad.headers.get('www-authenticate')]).toEqual([401, expect.stringContaining('invalid_token')]);
});

test('a test can revoke the access tokens of a grant, or all of it', async ({ emulator }) => {
  const first = await obtainTokens(emulator);
  const id = emulator.grants()[0]?.id ?? '';
  expect(emulator.revoke(id, 'access_tokens')).toBe(true);
  expect((await whoami(emulator, first.access_token)).status).toBe(401);
  const second = await tokens(await refresh(emulator, first.refresh_token));
  expect((await whoami(emulator, second.access_token)).status).toBe(200);
  expect(emulator.revoke(id)).toBe(true);
  expect((await refresh(emulator, second.refresh_token)).status).toBe(400);
  expect(emulator.revoke('unknown')).toBe(false);
});

test('grants of different pairings live side by side', async ({ emulator }) => {
  const one = await obtainTokens(emulator);
  const two = await tokens(await exchange(emulator, await obtainCode(emulator)));
  await refresh(emulator, one.refresh_token);
  expect((await refresh(emulator, two.refresh_token)).status).toBe(200);
  expect(emulator.grants().length).toBe(2);
});
