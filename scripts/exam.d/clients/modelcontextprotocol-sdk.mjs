import { existsSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { auth } from '@modelcontextprotocol/sdk/client/auth.js';
import { withOAuth } from '@modelcontextprotocol/sdk/client/middleware.js';
import { env, known, redirected } from './program.mjs';

const file = `${env.STATE_DIR}/provider.json`;
const kept = existsSync(file) ? JSON.parse(readFileSync(file, 'utf8')) : {};
function keep(members) {
  Object.assign(kept, members);
  writeFileSync(`${file}.new`, JSON.stringify(kept), { mode: 0o600 });
  renameSync(`${file}.new`, file);
  return kept;
}
if (known.id) kept.client ??= { client_id: known.id, ...(known.secret && { client_secret: known.secret }) };
if (env.OAUTH_REFRESH_TOKEN)
  kept.tokens ??= { access_token: 'none', token_type: 'bearer', refresh_token: env.OAUTH_REFRESH_TOKEN };

let authorizationUrl;
const provider = {
  redirectUrl: known.redirectUri,
  clientMetadata: { client_name: 'exam', redirect_uris: [known.redirectUri] },
  state: () => keep({ state: crypto.randomUUID() }).state,
  clientInformation: () => kept.client,
  saveClientInformation: (client) => keep({ client }),
  tokens: () => kept.tokens,
  saveTokens: (tokens) => keep({ tokens }),
  redirectToAuthorization(url) {
    authorizationUrl = url;
  },
  saveCodeVerifier: (verifier) => keep({ verifier }),
  codeVerifier: () => kept.verifier,
  invalidateCredentials(scope) {
    if (scope === 'all' || scope === 'client') keep({ client: undefined });
    if (scope === 'all' || scope === 'tokens') keep({ tokens: undefined });
  },
};

const call = withOAuth(provider, env.API_URL)(fetch);
for (; ; await new Promise((resolve) => setTimeout(resolve, 1000))) {
  try {
    await call(env.API_URL);
  } catch (error) {
    console.error(error.message);
    if (authorizationUrl === undefined) continue;
    const { searchParams } = await redirected(authorizationUrl);
    authorizationUrl = undefined;
    if (searchParams.get('state') !== kept.state || !searchParams.has('code')) process.exit(1);
    await auth(provider, { serverUrl: env.API_URL, authorizationCode: searchParams.get('code') });
  }
}
