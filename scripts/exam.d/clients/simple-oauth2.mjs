import { randomBytes } from 'node:crypto';
import { AuthorizationCode } from 'simple-oauth2';
import { env, known, redirected, run } from './program.mjs';

const client = new AuthorizationCode({
  client: { id: known.id, secret: known.secret },
  auth: { tokenHost: env.OAUTH_ISSUER, tokenPath: '/oauth2/token', authorizePath: '/oauth2/authorize' },
});

async function login() {
  const state = randomBytes(16).toString('hex');
  const { searchParams } = await redirected(client.authorizeURL({ redirect_uri: known.redirectUri, state }));
  if (searchParams.get('state') !== state || !searchParams.has('code')) throw new Error('the login failed');
  const { token } = await client.getToken({ code: searchParams.get('code'), redirect_uri: known.redirectUri });
  return token;
}

await run({
  // As its documentation shows, the new token object takes the place of the old one.
  refresh: async (tokens) => (await client.createToken(tokens).refresh()).token,
  login: env.OAUTH_AUTHORIZATION_ENDPOINT ? login : undefined,
  isFinal: (error) => error.data?.payload?.error === 'invalid_grant',
});
