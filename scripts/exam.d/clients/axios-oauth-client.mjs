import { randomBytes } from 'node:crypto';
import axios from 'axios';
import { authorizationCode, refreshToken } from 'axios-oauth-client';
import { env, known, redirected, run } from './program.mjs';

async function login() {
  const state = randomBytes(16).toString('hex');
  const url = new URL(env.OAUTH_AUTHORIZATION_ENDPOINT);
  url.search = new URLSearchParams({
    response_type: 'code',
    client_id: known.id,
    redirect_uri: known.redirectUri,
    state,
  });
  const { searchParams } = await redirected(url);
  if (searchParams.get('state') !== state || !searchParams.has('code')) throw new Error('the login failed');
  return authorizationCode(
    axios,
    known.tokenEndpoint,
    known.id,
    known.secret,
    known.redirectUri,
  )(searchParams.get('code'));
}

const refresh = refreshToken(axios, known.tokenEndpoint, known.id, known.secret);
await run({
  refresh: ({ refresh_token }) => refresh(refresh_token),
  login: env.OAUTH_AUTHORIZATION_ENDPOINT ? login : undefined,
  isFinal: ({ response }) => response?.data?.error === 'invalid_grant',
});
