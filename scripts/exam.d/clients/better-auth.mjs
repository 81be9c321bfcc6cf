import { randomBytes } from 'node:crypto';
import { createAuthorizationURL, refreshAccessToken, validateAuthorizationCode } from 'better-auth/oauth2';
import { env, known, redirected, run } from './program.mjs';

const options = { clientId: known.id, clientSecret: known.secret || undefined, redirectURI: known.redirectUri };
const common = { options, redirectURI: known.redirectUri, tokenEndpoint: known.tokenEndpoint };
const toResponse = ({ accessToken, refreshToken }) => ({
  access_token: accessToken,
  ...(refreshToken && { refresh_token: refreshToken }),
});

async function login() {
  const state = randomBytes(16).toString('hex');
  const codeVerifier = randomBytes(32).toString('base64url');
  const { searchParams } = await redirected(
    await createAuthorizationURL({
      ...{ ...common, id: 'cloud', state, codeVerifier },
      authorizationEndpoint: env.OAUTH_AUTHORIZATION_ENDPOINT,
    }),
  );
  if (searchParams.get('state') !== state || !searchParams.has('code')) throw new Error('the login failed');
  return toResponse(await validateAuthorizationCode({ ...common, code: searchParams.get('code'), codeVerifier }));
}

await run({
  refresh: async ({ refresh_token }) =>
    toResponse(await refreshAccessToken({ ...common, refreshToken: refresh_token })),
  login: env.OAUTH_AUTHORIZATION_ENDPOINT ? login : undefined,
  isFinal: ({ error }) => error === 'invalid_grant',
});
