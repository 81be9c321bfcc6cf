import { describe, expect, test } from 'vitest';
import { browserSkipReason, startBrowser } from '../../support/browser.ts';
import { startForeignSite } from '../../support/foreign-site.ts';
import {
  djangoOAuthToolkitSkipReason,
  startDjangoOAuthToolkit,
} from '../../support/oauth-servers/django-oauth-toolkit.ts';
import type { OAuthServer } from '../../support/oauth-servers/oauth-server.ts';
import { setUpOnce, skipIfUnavailable } from '../../support/set-up.ts';
import { errorOf, loginWithCode, refresh, relyingPartyOf, revoke } from './oauth-flows.ts';

describe('django-oauth-toolkit', () => {
  let server: OAuthServer;
  let redirectUri: string;
  const parts = setUpOnce(
    async (started) => {
      redirectUri = started.use(await startForeignSite(() => 'Logged in')).url;
      server = started.use(await startDjangoOAuthToolkit({ redirectUris: [redirectUri], accessTokenTtl: 90 }));
    },
    { skipReason: djangoOAuthToolkitSkipReason },
  );

  test('rotates refresh tokens, and accepts a used one during the grace period', async () => {
    const hub = await relyingPartyOf(server, redirectUri);
    const first = await loginWithCode(hub, server.scope, server.loginByScript);
    expect(first).toMatchObject({ scope: server.scope, expires_in: 90 });
    const count = await server.countRefreshTokens();

    const second = await refresh(hub, first.refresh_token);
    expect(second.refresh_token).not.toBe(first.refresh_token);
    expect(await server.countRefreshTokens()).toBe(count);

    const again = await refresh(hub, first.refresh_token);
    expect(again.refresh_token).toBe(second.refresh_token);
  });

  test('refuses a used refresh token if there is no grace period', async () => {
    const strict = parts.use(await startDjangoOAuthToolkit({ redirectUris: [redirectUri], gracePeriod: 0 }));
    const hub = await relyingPartyOf(strict, redirectUri);
    const first = await loginWithCode(hub, strict.scope, strict.loginByScript);
    await refresh(hub, first.refresh_token);
    expect(await errorOf(refresh(hub, first.refresh_token))).toBe('invalid_grant');
  });

  test('revokes a refresh token for its client, and all of them for a test', async () => {
    const hub = await relyingPartyOf(server, redirectUri);
    const revoked = await loginWithCode(hub, server.scope, server.loginByScript);
    const other = await loginWithCode(hub, server.scope, server.loginByScript);
    const count = await server.countRefreshTokens();
    await revoke(hub, revoked.refresh_token);
    expect(await server.countRefreshTokens()).toBe(count - 1);

    await server.revokeRefreshTokens();
    expect(await server.countRefreshTokens()).toBe(0);
    expect(await errorOf(refresh(hub, other.refresh_token))).toBe('invalid_grant');
  });

  describe('with a browser', () => {
    skipIfUnavailable(browserSkipReason);

    test('logs in by an authorization code, and again in the same browser', async () => {
      await using browser = await startBrowser();
      const { page } = await browser.visit();
      const hub = await relyingPartyOf(server, redirectUri);
      for (let login = 1; login <= 2; login++) {
        const tokens = await loginWithCode(hub, server.scope, (url) => server.login(page, url));
        expect(tokens).toHaveProperty('refresh_token');
      }
    });
  });
});
