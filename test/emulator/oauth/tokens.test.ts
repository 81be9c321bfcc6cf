import { decodeJwt, jwtVerify } from 'jose';
import { expect } from 'vitest';
import { HEATER, obtainTokens, PUMP, parseTokens, refreshTokens, test, whoami } from '../portal-client.ts';

test('access tokens and refresh tokens are not interchangeable, and altered tokens are refused', async ({
  emulator,
}) => {
  const { access_token, refresh_token } = await obtainTokens(emulator);
  expect((await whoami(emulator, refresh_token)).status).toBe(401);
  expect((await refreshTokens(emulator, access_token)).status).toBe(400);
  expect((await refreshTokens(emulator, refresh_token.replace('.1.', '.2.'))).status).toBe(400);
  expect((await refreshTokens(emulator, `${refresh_token}.`)).status).toBe(400);
});

test('a test can revoke the access tokens of a grant, or the whole grant', async ({ emulator }) => {
  const first = await obtainTokens(emulator);
  const id = emulator.grants()[0]?.id ?? '';
  expect(emulator.revoke(id, 'access_tokens')).toBe(true);
  expect((await whoami(emulator, first.access_token)).status).toBe(401);
  const second = await parseTokens(await refreshTokens(emulator, first.refresh_token));
  expect((await whoami(emulator, second.access_token)).status).toBe(200);
  expect(emulator.revoke(id)).toBe(true);
  expect((await refreshTokens(emulator, second.refresh_token)).status).toBe(400);
  expect(emulator.revoke('unknown')).toBe(false);
});

test('a token response has an ID token if the scope contains openid, which the client can verify', async ({
  emulator,
  clock,
}) => {
  const secret = new TextEncoder().encode(HEATER.secret);
  const first = await obtainTokens(emulator, { scope: 'openid Monitoring' });
  clock.pass(1000);
  const again = await parseTokens(await refreshTokens(emulator, first.refresh_token));
  const issued = Math.floor(clock.wall / 1000) - 1000;
  for (const [tokens, iat] of [
    [first, issued],
    [again, issued + 1000],
  ] as const) {
    const expected = { algorithms: ['HS256'], issuer: emulator.frontendUrl, audience: HEATER.id };
    const currentDate = new Date(1000 * iat);
    const { payload } = await jwtVerify(tokens.id_token ?? '', secret, { ...expected, currentDate });
    const claims = { sub: 'alice', name: 'alice', preferred_username: 'alice', iat, exp: iat + 3600 };
    expect(payload).toEqual({ iss: emulator.frontendUrl, aud: HEATER.id, ...claims });
  }
  await expect(jwtVerify(first.id_token ?? '', new TextEncoder().encode(PUMP.secret))).rejects.toThrow(/signature/);
});

test('a token response without the scope openid has an ID token only if the emulator is set to issue it', async ({
  emulator,
}) => {
  const first = await obtainTokens(emulator, { scope: 'openid2 Monitoring' });
  expect([first.id_token, (await obtainTokens(emulator)).id_token]).toEqual([undefined, undefined]);
  emulator.change({ idToken: true });
  const again = await parseTokens(await refreshTokens(emulator, first.refresh_token));
  expect(decodeJwt(again.id_token ?? '')).toMatchObject({ sub: 'alice' });
});
