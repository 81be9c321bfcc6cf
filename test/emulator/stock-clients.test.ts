import { allowInsecureRequests, Configuration, refreshTokenGrant } from 'openid-client';
import { AuthorizationCode } from 'simple-oauth2';
import { expect, test } from 'vitest';
import type { Emulator } from '../../src/emulator/index.ts';
import { outcomesOfFaults, UNNOTICED } from './fault-outcomes.ts';
import { get, HEATER, obtainTokens, redirectLocation, startTestEmulator, whoami } from './portal-client.ts';

/** The names and codes of an error and its causes, and its other details. */
function chain(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  const { code, cause, output } = error as Error & { code?: unknown; output?: { statusCode?: unknown } };
  const parts = [
    error.name,
    code,
    output?.statusCode,
    error.message.slice(0, 60),
    cause === undefined ? '' : chain(cause),
  ];
  return parts.filter((part) => part !== undefined && part !== '').join(' ');
}

/** simple-oauth2, after an automatic login. */
async function simpleOauth2(emulator: Emulator, authorizationMethod: 'header' | 'body') {
  const redirect_uri = `${emulator.baseUrl}/external/oauth2helper/code/set/${HEATER.id}`;
  const client = new AuthorizationCode({
    client: { id: HEATER.id, secret: HEATER.secret },
    auth: { tokenHost: emulator.frontendUrl, tokenPath: '/sso/token', authorizePath: '/sso/authorize' },
    options: { authorizationMethod },
  });
  const landed = new URL(
    redirectLocation(await get(client.authorizeURL({ redirect_uri, scope: 'Monitoring', state: 'a b' }))),
  );
  expect(landed.searchParams.get('state')).toBe('a b');
  return client.getToken({ code: landed.searchParams.get('code') ?? '', redirect_uri, scope: 'Monitoring' });
}

test.for(['header', 'body'] as const)(
  'simple-oauth2 gets and refreshes tokens at the emulator, with its credentials in the %s',
  async (authorizationMethod) => {
    await using emulator = await startTestEmulator({ autoLogin: true });
    const first = await simpleOauth2(emulator, authorizationMethod);
    const second = await first.refresh({ scope: 'Monitoring' });
    expect(second.token).toMatchObject({ token_type: 'bearer', scope: 'Monitoring', expires_in: 3600 });
    expect(second.token['refresh_token']).not.toBe(first.token['refresh_token']);
    expect((await whoami(emulator, String(second.token['access_token']))).status).toBe(200);
  },
);

test('simple-oauth2 reports or survives each kind of fault', async () => {
  await using emulator = await startTestEmulator({ autoLogin: true, refreshGrace: 100 });
  const token = await simpleOauth2(emulator, 'body');
  expect(await outcomesOfFaults(emulator, () => token.refresh(), chain)).toEqual({
    status: expect.stringMatching(/ 503 /),
    redirect: expect.stringMatching(/ 406 .*not JSON/),
    not_json: expect.stringMatching(/not valid JSON/),
    reset_before: expect.stringMatching(/ECONNRESET/),
    commit_then_drop: expect.stringMatching(/ECONNRESET/),
    truncate: expect.stringMatching(/closed prematurely/),
    content_type: expect.stringMatching(/ 406 .*not JSON/),
    ...UNNOTICED,
  });
});

test('openid-client reports or survives each kind of fault', async () => {
  await using emulator = await startTestEmulator({ refreshGrace: 100 });
  const { refresh_token } = await obtainTokens(emulator, { scope: 'Monitoring' });
  const metadata = { issuer: emulator.frontendUrl, token_endpoint: `${emulator.frontendUrl}/sso/token` };
  const portal = new Configuration(metadata, HEATER.id, HEATER.secret);
  allowInsecureRequests(portal);
  expect(await outcomesOfFaults(emulator, () => refreshTokenGrant(portal, refresh_token), chain)).toEqual({
    status: expect.stringMatching(/unexpected HTTP response status/),
    redirect: expect.stringMatching(/unexpected HTTP response status/),
    not_json: expect.stringMatching(/OAUTH_PARSE_ERROR/),
    reset_before: expect.stringMatching(/ECONNRESET/),
    commit_then_drop: expect.stringMatching(/ECONNRESET/),
    truncate: expect.stringMatching(/UND_ERR_SOCKET/),
    content_type: 'good',
    ...UNNOTICED,
  });
});
