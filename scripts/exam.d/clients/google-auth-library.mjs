import { randomBytes } from 'node:crypto';
import { CodeChallengeMethod, OAuth2Client } from 'google-auth-library';
import { env, known, load, redirected, save } from './program.mjs';

const client = new OAuth2Client({
  clientId: known.id,
  clientSecret: known.secret,
  redirectUri: known.redirectUri,
  endpoints: { oauth2AuthBaseUrl: env.OAUTH_AUTHORIZATION_ENDPOINT, oauth2TokenUrl: known.tokenEndpoint },
});
// It refreshes by itself, and tells its user of new tokens.
client.on('tokens', (tokens) => save({ ...client.credentials, ...tokens }));

async function login() {
  const state = randomBytes(16).toString('hex');
  const { codeVerifier, codeChallenge } = await client.generateCodeVerifierAsync();
  const { searchParams } = await redirected(
    client.generateAuthUrl({
      state,
      code_challenge: codeChallenge,
      code_challenge_method: CodeChallengeMethod.S256,
    }),
  );
  if (searchParams.get('state') !== state || !searchParams.has('code')) throw new Error('the login failed');
  return (await client.getToken({ code: searchParams.get('code'), codeVerifier })).tokens;
}

const stored = load();
if (stored === null && !env.OAUTH_AUTHORIZATION_ENDPOINT) process.exit(1);
client.setCredentials(stored ?? (await login()));
for (; ; await new Promise((resolve) => setTimeout(resolve, 1000))) {
  try {
    await client.request({ url: env.API_URL });
  } catch (error) {
    console.error(error.message);
    if (error.response?.data?.error === 'invalid_grant') process.exit(1);
  }
}
