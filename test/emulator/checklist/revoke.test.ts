import { expect } from 'vitest';
import type { Emulator } from '../../../src/emulator/index.ts';
import {
  errorOf,
  HEATER,
  obtainTokens,
  PUMP,
  parseTokens,
  post,
  refreshTokens,
  startTestEmulator,
  test,
  whoami,
} from '../portal-client.ts';

const credentials = { client_id: HEATER.id, client_secret: HEATER.secret };

function revoke(emulator: Emulator, form: Record<string, string> | string, headers: Record<string, string> = {}) {
  return post(`${emulator.baseUrl}/oauth2/revoke`, form, headers);
}

test('RFC 7009, 2: the revocation endpoint accepts form-encoded POST only, and no repeated parameter', async ({
  emulator,
}) => {
  const { refresh_token } = await obtainTokens(emulator);
  const form = new URLSearchParams({ ...credentials, token: refresh_token }).toString();
  const answers = [
    await fetch(`${emulator.baseUrl}/oauth2/revoke?${form}`),
    await revoke(emulator, form, { 'content-type': 'application/json' }),
    await revoke(emulator, `${form}&token=x`),
  ];
  expect(answers.map(({ status }) => status)).toEqual([405, 400, 400]);
  expect(await errorOf(await revoke(emulator, `${form}&token=x`))).toEqual([400, 'invalid_request']);
  expect((await refreshTokens(emulator, refresh_token)).status).toBe(200);
});

test('RFC 7009, 2.1: the client is authenticated as at the token endpoint, and a refused request revokes nothing', async () => {
  await using emulator = await startTestEmulator();
  const { refresh_token: token } = await obtainTokens(emulator);
  const wrong = { ...credentials, client_secret: 'wrong' };
  expect(await errorOf(await revoke(emulator, { ...wrong, token }))).toEqual([401, 'invalid_client']);
  expect(await errorOf(await revoke(emulator, { token }))).toEqual([401, 'invalid_client']);
  const bad = await revoke(emulator, { token }, { authorization: 'Basic eDp5' });
  expect([bad.status, bad.headers.get('www-authenticate')]).toEqual([401, expect.stringMatching(/^Basic /)]);
  const encode = (text: string) => new URLSearchParams({ text }).toString().slice('text='.length);
  const pair = Buffer.from(`${encode(HEATER.id)}:${encode(HEATER.secret)}`).toString('base64');
  const basic = { authorization: `Basic ${pair}` };
  expect(await errorOf(await revoke(emulator, { ...credentials, token }, basic))).toEqual([400, 'invalid_request']);
  expect(emulator.grants()).toMatchObject([{ revoked: false }]);
  expect(emulator.findings().failedAuthentications.map(({ way, count }) => [way, count])).toEqual([
    ['form', 1],
    ['none', 1],
    ['authorization header', 1],
    ['authorization header', 1],
  ]);
  expect((await revoke(emulator, { token }, basic)).status).toBe(200);
  expect(emulator.grants()).toMatchObject([{ revoked: true }]);
});

test('RFC 7009, 2.1: a refresh token is revoked with its whole grant, and other grants stay', async ({ emulator }) => {
  const [first, other] = [await obtainTokens(emulator), await obtainTokens(emulator)];
  const second = await parseTokens(await refreshTokens(emulator, first.refresh_token));
  const answer = await revoke(emulator, { ...credentials, token: second.refresh_token });
  expect([answer.status, await answer.text(), answer.headers.get('cache-control')]).toEqual([200, '', 'no-store']);
  expect(await errorOf(await refreshTokens(emulator, second.refresh_token))).toEqual([400, 'invalid_grant']);
  expect((await whoami(emulator, first.access_token)).status).toBe(401);
  expect((await whoami(emulator, second.access_token)).status).toBe(401);
  expect((await whoami(emulator, other.access_token)).status).toBe(200);
  expect((await refreshTokens(emulator, other.refresh_token)).status).toBe(200);
});

test('RFC 7009, 2.1: an access token is revoked on its own', async ({ emulator }) => {
  const first = await obtainTokens(emulator);
  const second = await parseTokens(await refreshTokens(emulator, first.refresh_token));
  expect((await revoke(emulator, { ...credentials, token: second.access_token })).status).toBe(200);
  expect((await whoami(emulator, second.access_token)).status).toBe(401);
  expect((await whoami(emulator, first.access_token)).status).toBe(200);
  const third = await parseTokens(await refreshTokens(emulator, second.refresh_token));
  expect((await whoami(emulator, third.access_token)).status).toBe(200);
  expect(emulator.findings().earlyRefreshes).toMatchObject([{ count: 1 }]);
});

test('RFC 7009, 2.1: a token of another client is refused and stays valid', async ({ emulator }) => {
  const tokens = await obtainTokens(emulator);
  const pump = { client_id: PUMP.id, client_secret: PUMP.secret };
  for (const token of [tokens.refresh_token, tokens.access_token]) {
    expect(await errorOf(await revoke(emulator, { ...pump, token }))).toEqual([400, 'invalid_grant']);
  }
  expect((await whoami(emulator, tokens.access_token)).status).toBe(200);
  expect((await refreshTokens(emulator, tokens.refresh_token)).status).toBe(200);
});

test('RFC 7009, 2.1: a token is found even if token_type_hint is wrong or unknown', async ({ emulator }) => {
  for (const token_type_hint of ['access_token', 'x']) {
    const { refresh_token: token } = await obtainTokens(emulator);
    expect((await revoke(emulator, { ...credentials, token, token_type_hint })).status).toBe(200);
    expect(emulator.grants().at(-1)?.revoked).toBe(true);
  }
});

test('RFC 7009, 2.2: an unknown, expired or revoked token gets 200', async ({ emulator, clock }) => {
  const { access_token, refresh_token } = await obtainTokens(emulator);
  clock.pass(3600);
  for (const token of ['unknown', access_token, refresh_token, refresh_token]) {
    expect((await revoke(emulator, { ...credentials, token })).status).toBe(200);
  }
});

test('RFC 7009, 2.2.1: a missing token is an invalid_request', async ({ emulator }) => {
  expect(await errorOf(await revoke(emulator, credentials))).toEqual([400, 'invalid_request']);
  expect(await errorOf(await revoke(emulator, { ...credentials, token: '' }))).toEqual([400, 'invalid_request']);
});
