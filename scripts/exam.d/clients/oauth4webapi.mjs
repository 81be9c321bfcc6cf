import * as oauth from 'oauth4webapi';
import { env, known, redirected, run } from './program.mjs';

const http = { [oauth.allowInsecureRequests]: true };
const issuer = new URL(env.OAUTH_ISSUER);
const server = await oauth.processDiscoveryResponse(
  issuer,
  await oauth.discoveryRequest(issuer, { ...http, algorithm: 'oauth2' }),
);
const client = { client_id: known.id };
const authentication = known.secret ? oauth.ClientSecretBasic(known.secret) : oauth.None();

async function loginByCode() {
  const verifier = oauth.generateRandomCodeVerifier();
  const state = oauth.generateRandomState();
  const scope = env.OAUTH_SCOPE;
  const nonce = scope && oauth.generateRandomNonce();
  const url = new URL(server.authorization_endpoint);
  url.search = new URLSearchParams({
    response_type: 'code',
    client_id: known.id,
    redirect_uri: known.redirectUri,
    code_challenge: await oauth.calculatePKCECodeChallenge(verifier),
    code_challenge_method: 'S256',
    state,
    ...(scope && { scope, nonce }),
  });
  const parameters = oauth.validateAuthResponse(server, client, await redirected(url), state);
  const response = await oauth.authorizationCodeGrantRequest(
    ...[server, client, authentication, parameters, known.redirectUri, verifier, http],
  );
  return oauth.processAuthorizationCodeResponse(server, client, response, {
    ...(nonce && { expectedNonce: nonce, requireIdToken: true }),
  });
}

await run({
  async refresh({ refresh_token }) {
    const response = await oauth.refreshTokenGrantRequest(server, client, authentication, refresh_token, http);
    return oauth.processRefreshTokenResponse(server, client, response);
  },
  login: env.OAUTH_AUTHORIZATION_ENDPOINT ? loginByCode : undefined,
  isFinal: ({ error }) => error === 'invalid_grant',
});
