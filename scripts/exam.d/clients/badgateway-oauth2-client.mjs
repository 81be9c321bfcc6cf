import { randomBytes } from 'node:crypto';
import { generateCodeVerifier, OAuth2Client } from '@badgateway/oauth2-client';
import { env, known, redirected, run } from './program.mjs';

const client = new OAuth2Client({
  server: env.OAUTH_ISSUER,
  clientId: known.id,
  clientSecret: known.secret || undefined,
  discoveryEndpoint: '/.well-known/oauth-authorization-server',
});
const toResponse = ({ accessToken, refreshToken }) => ({
  access_token: accessToken,
  ...(refreshToken && { refresh_token: refreshToken }),
});

async function login() {
  const state = randomBytes(16).toString('hex');
  const codeVerifier = await generateCodeVerifier();
  const redirectUri = known.redirectUri;
  const url = await client.authorizationCode.getAuthorizeUri({ redirectUri, state, codeVerifier });
  const back = await redirected(url);
  return toResponse(
    await client.authorizationCode.getTokenFromCodeRedirect(back, { redirectUri, state, codeVerifier }),
  );
}

await run({
  refresh: async ({ access_token, refresh_token }) =>
    toResponse(
      await client.refreshToken({ accessToken: access_token ?? '', refreshToken: refresh_token, expiresAt: null }),
    ),
  login: env.OAUTH_AUTHORIZATION_ENDPOINT ? login : undefined,
  isFinal: ({ oauth2Code }) => oauth2Code === 'invalid_grant',
});
