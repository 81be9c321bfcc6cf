import { exportJWK, generateKeyPair } from 'jose';
import * as oauth from 'oauth4webapi';
import type { Page } from 'playwright-core';
import { describe, expect, test } from 'vitest';
import { browserSkipReason, startBrowser } from '../../support/browser.ts';
import { startForeignSite } from '../../support/foreign-site.ts';
import { type OidcProvider, startOidcProvider } from '../../support/oauth-servers/oidc-provider.ts';
import { setUpOnce } from '../../support/set-up.ts';
import { errorOf, loginWithCode, loginWithDevice, refresh, relyingPartyOf, revoke } from './oauth-flows.ts';

describe('oidc-provider', () => {
  let server: OidcProvider;
  let key: CryptoKey;
  let redirectUri: string;
  const client = (...as: [Parameters<typeof relyingPartyOf>[2]?]) => relyingPartyOf(server, redirectUri, ...as);
  setUpOnce(async (parts) => {
    redirectUri = parts.use(await startForeignSite(() => 'Logged in')).url;
    const pair = await generateKeyPair('ES256');
    key = pair.privateKey;
    const publicKey = await exportJWK(pair.publicKey);
    server = parts.use(await startOidcProvider({ redirectUris: [redirectUri], publicKey, accessTokenTtl: 90 }));
  });

  test('publishes its endpoints and that it sends its issuer with a redirect', async () => {
    const { server: metadata } = await client();
    expect(metadata).toMatchObject({
      authorization_endpoint: server.endpoints.authorization,
      token_endpoint: server.endpoints.token,
      device_authorization_endpoint: server.endpoints.deviceAuthorization,
      revocation_endpoint: server.endpoints.revocation,
      authorization_response_iss_parameter_supported: true,
    });
  });

  test('refuses an authorization request without PKCE', async () => {
    const url = new URL(server.endpoints.authorization);
    const { id: client_id } = server.client;
    const params = { response_type: 'code', client_id, redirect_uri: redirectUri, scope: server.scope };
    url.search = new URLSearchParams(params).toString();
    expect(await server.loginByScript(url.href)).toContain('error=invalid_request');
  });

  test('rotates refresh tokens, and revokes the grant if one is used twice', async () => {
    const hub = await client();
    const first = await loginWithCode(hub, server.scope, server.loginByScript);
    expect(first).toMatchObject({ scope: server.scope, expires_in: 90 });
    const count = await server.countRefreshTokens();

    const second = await refresh(hub, first.refresh_token);
    expect(second.refresh_token).not.toBe(first.refresh_token);
    expect(await server.countRefreshTokens()).toBe(count);

    expect(await errorOf(refresh(hub, first.refresh_token))).toBe('invalid_grant');
    expect(await errorOf(refresh(hub, second.refresh_token))).toBe('invalid_grant');
    expect(await server.countRefreshTokens()).toBe(count - 1);
  });

  test('logs in by the device flow without a browser', async () => {
    const hub = await client();
    const first = await loginWithDevice(hub, server.scope, server.loginByScript);
    expect(await refresh(hub, first.refresh_token)).toHaveProperty('refresh_token');
  });

  test.for([
    [
      'client_secret_post',
      () => ({ id: server.clientIds.post, authentication: oauth.ClientSecretPost(server.client.secret) }),
    ],
    ['none', () => ({ id: server.clientIds.none, authentication: oauth.None() })],
    ['private_key_jwt', () => ({ id: server.clientIds.privateKeyJwt, authentication: oauth.PrivateKeyJwt(key) })],
  ] as const)('accepts a client that authenticates by %s', async ([, metadata]) => {
    const hub = await client(metadata());
    const first = await loginWithCode(hub, server.scope, server.loginByScript);
    expect(await refresh(hub, first.refresh_token)).toHaveProperty('refresh_token');
  });

  test('revokes a refresh token for its client, and all of them for a test', async () => {
    const hub = await client();
    const revoked = await loginWithCode(hub, server.scope, server.loginByScript);
    const other = await loginWithCode(hub, server.scope, server.loginByScript);
    await revoke(hub, revoked.refresh_token);
    expect(await errorOf(refresh(hub, revoked.refresh_token))).toBe('invalid_grant');

    await server.revokeRefreshTokens();
    expect(await server.countRefreshTokens()).toBe(0);
    expect(await errorOf(refresh(hub, other.refresh_token))).toBe('invalid_grant');
  });

  describe('with a browser', () => {
    let page: Page;
    setUpOnce(
      async (parts) => {
        const browser = parts.use(await startBrowser());
        ({ page } = parts.use(await browser.visit()));
      },
      { skipReason: browserSkipReason },
    );

    test('logs in by an authorization code', async () => {
      const tokens = await loginWithCode(await client(), server.scope, (url) => server.login(page, url));
      expect(tokens).toHaveProperty('refresh_token');
    });

    test('logs in again in the same browser, by the device flow', async () => {
      const tokens = await loginWithDevice(await client(), server.scope, (url) => server.login(page, url));
      expect(tokens).toHaveProperty('refresh_token');
    });
  });
});
