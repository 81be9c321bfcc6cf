import { describe, expect, test } from 'vitest';
import { browserSkipReason, startBrowser } from '../../support/browser.ts';
import { startForeignSite } from '../../support/foreign-site.ts';
import { authlibSkipReason, type Quirk, startAuthlib } from '../../support/oauth-servers/authlib.ts';
import { setUpOnce, skipIfUnavailable } from '../../support/set-up.ts';
import {
  errorOf,
  loginWithCode,
  refresh,
  relyingPartyOf,
  requestRefresh,
  requestTokens,
  unencodedBasic,
} from './oauth-flows.ts';

/** The response without a quirk. */
const USUAL = {
  access_token: expect.any(String),
  refresh_token: expect.any(String),
  token_type: 'Bearer',
  expires_in: 90,
  scope: 'monitoring control',
};

describe('Authlib with quirks', () => {
  let redirectUri: string;
  const parts = setUpOnce(
    async (started) => {
      redirectUri = started.use(await startForeignSite(() => 'Logged in')).url;
    },
    { skipReason: authlibSkipReason },
  );
  const start = async (...quirks: Quirk[]) => {
    const server = parts.use(await startAuthlib({ redirectUris: [redirectUri], accessTokenTtl: 90, quirks }));
    return { server, hub: await relyingPartyOf(server, redirectUri, { authentication: unencodedBasic(server) }) };
  };

  test('without a quirk it is a normal server that rotates refresh tokens', async () => {
    const { server, hub } = await start();
    const first = await loginWithCode(hub, server.scope, server.loginByScript);
    expect(first).toMatchObject({ scope: server.scope, expires_in: 90, token_type: 'bearer' });
    const second = await refresh(hub, first.refresh_token);
    expect(second).toMatchObject({ scope: server.scope, expires_in: 90 });
    expect(await errorOf(refresh(hub, first.refresh_token))).toBe('invalid_grant');
    expect(await server.countRefreshTokens()).toBe(1);
    await server.revokeRefreshTokens();
    expect(await errorOf(refresh(hub, second.refresh_token))).toBe('invalid_grant');
  });

  test.for([
    ['string-expires-in', { expires_in: '90' }],
    ['comma-scopes', { scope: 'monitoring,control' }],
    ['no-token-type', { token_type: undefined }],
    ['no-new-refresh-token', { refresh_token: undefined }],
    ['narrowed-scope', { scope: 'monitoring' }],
  ] as const)('the quirk %s changes the response to a refresh', async ([quirk, expected]) => {
    const { server, hub } = await start(quirk);
    const login = await requestTokens(hub, server.scope, server.loginByScript);
    const [, refreshToken] = /"refresh_token": "([^"]+)"/.exec(await login.text()) ?? [];
    const response = await requestRefresh(hub, refreshToken);
    expect(response.status).toBe(200);
    expect(await response.json()).toEqual({ ...USUAL, ...expected });
  });

  test('the quirk envelope wraps a response', async () => {
    const { server, hub } = await start('envelope');
    const response = await requestTokens(hub, server.scope, server.loginByScript);
    expect(response.status).toBe(200);
    expect(await response.json()).toEqual({ status: 0, body: USUAL });
  });

  test.for([
    ['envelope', 200, '{"status": 400, "body": {}, "error": "invalid_grant"}'],
    ['html-errors', 400, '<!doctype html><h1>Sorry</h1>'],
    ['invalid-grant-401', 401, '{"error": "invalid_grant"}'],
  ] as const)('the quirk %s changes the response to a refused refresh', async ([quirk, status, body]) => {
    const { hub } = await start(quirk);
    const response = await requestRefresh(hub, 'unknown');
    expect({ status: response.status, body: await response.text() }).toEqual({ status, body });
  });

  test('the quirk no-new-refresh-token keeps the old refresh token valid', async () => {
    const { server, hub } = await start('no-new-refresh-token');
    const { refresh_token } = await loginWithCode(hub, server.scope, server.loginByScript);
    await refresh(hub, refresh_token);
    expect(await errorOf(refresh(hub, refresh_token))).toBe('none');
  });

  describe('with a browser', () => {
    skipIfUnavailable(browserSkipReason);

    test('logs in by an authorization code', async () => {
      await using browser = await startBrowser();
      const { page } = await browser.visit();
      const { server, hub } = await start();
      const tokens = await loginWithCode(hub, server.scope, (url) => server.login(page, url));
      expect(tokens).toHaveProperty('refresh_token');
    });
  });
});
