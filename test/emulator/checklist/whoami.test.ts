import { expect } from 'vitest';
import type { Emulator } from '../../../src/emulator/index.ts';
import { get, obtainTokens, refreshTokens, test, whoami } from '../portal-client.ts';

async function challenged(emulator: Emulator, authorization?: string): Promise<[number, string | null]> {
  const headers: Record<string, string> = authorization === undefined ? {} : { authorization };
  const response = await get(`${emulator.baseUrl}/api/whoami`, headers);
  return [response.status, challengeOf(response)];
}

/** The challenge of a response, without the address of the metadata (RFC 9728, 5.1), which all have. */
function challengeOf(response: Response): string | null {
  return response.headers.get('www-authenticate')?.replace(/, resource_metadata="[^"]+"$/, '') ?? null;
}

test('RFC 6750, 2.1: the token is accepted in the Authorization header, with the scheme in any case', async ({
  emulator,
}) => {
  const { access_token } = await obtainTokens(emulator);
  for (const scheme of ['Bearer', 'bearer', 'BEARER']) {
    expect(await challenged(emulator, `${scheme} ${access_token}`), scheme).toEqual([200, null]);
  }
});

test('RFC 6750, 2.3: a token in the request address is not accepted', async ({ emulator }) => {
  const { access_token } = await obtainTokens(emulator);
  const response = await get(`${emulator.baseUrl}/api/whoami?access_token=${access_token}`);
  expect([response.status, challengeOf(response)]).toEqual([401, 'Bearer realm="portal"']);
});

test('RFC 6750, 3: without a token the challenge names no error', async ({ emulator }) => {
  expect(await challenged(emulator)).toEqual([401, 'Bearer realm="portal"']);
  expect(await challenged(emulator, 'Basic eDp5')).toEqual([401, 'Bearer realm="portal"']);
});

test('RFC 6750, 3.1: an unknown, expired or revoked token is an invalid_token', async ({ emulator, clock }) => {
  const expected = [401, 'Bearer realm="portal", error="invalid_token"'];
  const [late, revoked] = [await obtainTokens(emulator), await obtainTokens(emulator)];
  expect((await whoami(emulator, revoked.access_token)).status).toBe(200);
  emulator.revoke(emulator.grants()[1]?.id ?? '');
  expect(await challenged(emulator, `Bearer ${revoked.access_token}`)).toEqual(expected);
  expect(await challenged(emulator, 'Bearer unknown')).toEqual(expected);
  expect(await challenged(emulator, `Bearer ${late.refresh_token}`)).toEqual(expected);
  clock.pass(3600);
  expect(await challenged(emulator, `Bearer ${late.access_token}`)).toEqual(expected);
});

test('the body of a refusal says why an access token is not valid', async ({ emulator, clock }) => {
  const [first, second] = [await obtainTokens(emulator), await obtainTokens(emulator)];
  const reason = async (token: string): Promise<unknown> => (await whoami(emulator, token)).json();
  const refused = (description: string) => ({ error: 'invalid_token', error_description: description });
  expect(await reason(`${first.access_token}x`)).toEqual(
    refused('unknown token: it was not issued here, or was changed'),
  );
  expect(await reason(first.refresh_token)).toEqual(refused('this is a refresh token, not an access token'));
  emulator.revoke(emulator.grants()[0]?.id ?? '', 'access_tokens');
  expect(await reason(first.access_token)).toEqual(refused('the access token was revoked'));
  emulator.revoke(emulator.grants()[0]?.id ?? '');
  expect(await reason(first.access_token)).toEqual(refused('the grant was revoked'));
  clock.pass(3600);
  expect(await reason(second.access_token)).toEqual(refused('the access token has expired'));
  expect(await (await refreshTokens(emulator, second.access_token)).json()).toEqual({
    error: 'invalid_grant',
    error_description: 'unknown token: this is an access token, not a refresh token',
  });
});

test('RFC 6750, 3.1: a malformed Bearer header is an invalid_request with status 400', async ({ emulator }) => {
  for (const header of ['Bearer', 'Bearer a b', 'Bearer "a"', 'Bearer a,b', 'Bearer =a']) {
    const expected = [400, 'Bearer realm="portal", error="invalid_request"'];
    expect(await challenged(emulator, header), header).toEqual(expected);
  }
});

test('RFC 6750, 5.3: responses to requests with a token carry Cache-Control no-store', async ({ emulator }) => {
  const { access_token } = await obtainTokens(emulator);
  for (const token of [access_token, 'unknown']) {
    expect((await whoami(emulator, token)).headers.get('cache-control')).toBe('no-store');
  }
});
