import * as openid from 'openid-client';
import { env, known, redirected, run } from './program.mjs';

const http = { execute: [openid.allowInsecureRequests], algorithm: 'oauth2' };
const config = await openid.discovery(new URL(env.OAUTH_ISSUER), known.id, known.secret || undefined, undefined, http);

async function loginByCode() {
  const pkceCodeVerifier = openid.randomPKCECodeVerifier();
  const scope = env.OAUTH_SCOPE;
  const checks = {
    pkceCodeVerifier,
    expectedState: openid.randomState(),
    ...(scope && { expectedNonce: openid.randomNonce() }),
  };
  const url = openid.buildAuthorizationUrl(config, {
    redirect_uri: known.redirectUri,
    code_challenge: await openid.calculatePKCECodeChallenge(pkceCodeVerifier),
    code_challenge_method: 'S256',
    state: checks.expectedState,
    ...(scope && { scope, nonce: checks.expectedNonce }),
  });
  return openid.authorizationCodeGrant(config, await redirected(url), checks);
}

async function loginByDevice() {
  return openid.pollDeviceAuthorizationGrant(config, await openid.initiateDeviceAuthorization(config, {}));
}

await run({
  refresh: ({ refresh_token }) => openid.refreshTokenGrant(config, refresh_token),
  login: env.OAUTH_AUTHORIZATION_ENDPOINT ? loginByCode : loginByDevice,
  isFinal: ({ error }) => error === 'invalid_grant',
});
