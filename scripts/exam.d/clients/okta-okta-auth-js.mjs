import { OktaAuth } from '@okta/okta-auth-js';
import { env, known, redirected, run } from './program.mjs';

// Its refreshes have no client secret, so that only public clients refresh with it.
if (!env.OAUTH_AUTHORIZATION_ENDPOINT) process.exit(1);
delete env.OAUTH_REFRESH_TOKEN;
const okta = new OktaAuth({
  issuer: env.OAUTH_ISSUER,
  clientId: known.id,
  clientSecret: known.secret || undefined,
  redirectUri: known.redirectUri,
  authorizeUrl: env.OAUTH_AUTHORIZATION_ENDPOINT,
  tokenUrl: known.tokenEndpoint,
  scopes: ['openid'],
});

async function login() {
  const { codeVerifier, codeChallenge, codeChallengeMethod, state, nonce, scopes } =
    await okta.token.prepareTokenParams();
  const url = new URL(env.OAUTH_AUTHORIZATION_ENDPOINT);
  url.search = new URLSearchParams({
    response_type: 'code',
    client_id: known.id,
    redirect_uri: known.redirectUri,
    code_challenge: codeChallenge,
    code_challenge_method: codeChallengeMethod,
    state,
    nonce,
    scope: scopes.join(' '),
  });
  const { searchParams } = await redirected(url);
  if (searchParams.get('state') !== state || !searchParams.has('code')) throw new Error('the login failed');
  const authorizationCode = searchParams.get('code');
  const { tokens } = await okta.token.exchangeCodeForTokens({ authorizationCode, codeVerifier, nonce });
  return { access_token: tokens.accessToken.accessToken };
}

const refresh = () => Promise.reject(new Error('no refresh'));
await run({ refresh, login });
