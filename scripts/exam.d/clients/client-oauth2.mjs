import { randomBytes } from 'node:crypto';
import ClientOAuth2 from 'client-oauth2';
import { env, known, redirected, run } from './program.mjs';

const client = new ClientOAuth2({
  clientId: known.id,
  clientSecret: known.secret,
  accessTokenUri: known.tokenEndpoint,
  authorizationUri: env.OAUTH_AUTHORIZATION_ENDPOINT,
  redirectUri: known.redirectUri,
});

async function login() {
  const state = randomBytes(16).toString('hex');
  return (await client.code.getToken(String(await redirected(client.code.getUri({ state }))), { state })).data;
}

await run({
  refresh: async ({ refresh_token }) => (await client.createToken('', refresh_token, 'bearer', {}).refresh()).data,
  login: env.OAUTH_AUTHORIZATION_ENDPOINT ? login : undefined,
  isFinal: ({ code, body }) => code === 'EAUTH' && body?.error === 'invalid_grant',
});
