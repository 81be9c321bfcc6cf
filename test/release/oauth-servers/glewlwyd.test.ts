import type { Page } from 'playwright-core';
import { describe, expect, test } from 'vitest';
import { browserSkipReason, startBrowser } from '../../support/browser.ts';
import { startForeignSite } from '../../support/foreign-site.ts';
import { type Glewlwyd, glewlwydSkipReason, startGlewlwyd } from '../../support/oauth-servers/glewlwyd.ts';
import { setUpOnce } from '../../support/set-up.ts';
import {
  errorOf,
  loginWithCode,
  loginWithDevice,
  refresh,
  relyingPartyOf,
  revoke,
  unencodedBasic,
} from './oauth-flows.ts';

/** It refuses a refresh token without a body, against RFC 6749, 5.2. */
const REFUSED = 'HTTP 400';

describe('glewlwyd', () => {
  let server: Glewlwyd;
  let redirectUri: string;
  const client = () => relyingPartyOf(server, redirectUri, { authentication: unencodedBasic(server) });
  setUpOnce(
    async (parts) => {
      redirectUri = parts.use(await startForeignSite(() => 'Logged in')).url;
      server = parts.use(await startGlewlwyd({ redirectUris: [redirectUri], accessTokenTtl: 90 }));
    },
    { skipReason: glewlwydSkipReason },
  );

  test('publishes its endpoints', async () => {
    const { server: metadata } = await client();
    expect(metadata).toMatchObject({
      authorization_endpoint: server.endpoints.authorization,
      token_endpoint: server.endpoints.token,
      device_authorization_endpoint: server.endpoints.deviceAuthorization,
      revocation_endpoint: server.endpoints.revocation,
    });
  });

  test('sends its issuer with a redirect', async () => {
    let redirect = '';
    await loginWithCode(await client(), server.scope, async (url) => {
      redirect = await server.loginByScript(url);
      return redirect;
    });
    expect(new URL(redirect).searchParams.get('iss')).toBe(server.issuer);
  });

  test('rotates refresh tokens, and revokes the newest if an older one is used again', async () => {
    const hub = await client();
    const first = await loginWithCode(hub, server.scope, server.loginByScript);
    expect(first).toMatchObject({ scope: server.scope, expires_in: 90 });
    const count = await server.countRefreshTokens();

    const second = await refresh(hub, first.refresh_token);
    expect(second.refresh_token).not.toBe(first.refresh_token);
    expect(await server.countRefreshTokens()).toBe(count);

    expect(await errorOf(refresh(hub, first.refresh_token))).toBe(REFUSED);
    expect(await errorOf(refresh(hub, second.refresh_token))).toBe(REFUSED);
    expect(await server.countRefreshTokens()).toBe(count - 1);
  });

  test('logs in by the device flow without a browser', async () => {
    const hub = await client();
    const first = await loginWithDevice(hub, server.scope, server.loginByScript);
    expect(await refresh(hub, first.refresh_token)).toHaveProperty('refresh_token');
  });

  test('revokes a refresh token for its client, and all of them for a test', async () => {
    const hub = await client();
    const revoked = await loginWithCode(hub, server.scope, server.loginByScript);
    const other = await loginWithCode(hub, server.scope, server.loginByScript);
    await revoke(hub, revoked.refresh_token);
    expect(await errorOf(refresh(hub, revoked.refresh_token))).toBe(REFUSED);

    await server.revokeRefreshTokens();
    expect(await server.countRefreshTokens()).toBe(0);
    expect(await errorOf(refresh(hub, other.refresh_token))).toBe(REFUSED);
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
