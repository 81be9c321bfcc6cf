// Unmodified @modelcontextprotocol/sdk: finds the server of an API by its address alone, registers itself, logs in and
// refreshes. Prints what it got as JSON. The server logs its user in without a page.
import { auth } from '@modelcontextprotocol/sdk/client/auth.js';

const { API, REDIRECT_URI } = process.env;
const kept = {};
let location = '';
const provider = {
  redirectUrl: REDIRECT_URI,
  clientMetadata: {
    client_name: 'An agent',
    redirect_uris: [REDIRECT_URI],
    grant_types: ['authorization_code', 'refresh_token'],
    response_types: ['code'],
    token_endpoint_auth_method: 'none',
  },
  state: () => 'a state',
  clientInformation: () => kept.client,
  saveClientInformation: (client) => Object.assign(kept, { client }),
  tokens: () => kept.tokens,
  saveTokens: (tokens) => Object.assign(kept, { tokens }),
  saveCodeVerifier: (verifier) => Object.assign(kept, { verifier }),
  codeVerifier: () => kept.verifier,
  async redirectToAuthorization(url) {
    const { headers } = await fetch(url, { redirect: 'manual' });
    location = headers.get('location');
  },
};
const begun = await auth(provider, { serverUrl: API });
const authorizationCode = new URL(location).searchParams.get('code');
const loggedIn = await auth(provider, { serverUrl: API, authorizationCode });
const first = kept.tokens;
const refreshed = await auth(provider, { serverUrl: API });
const tokens = [first, kept.tokens].map(({ access_token }) => access_token);
console.log(JSON.stringify({ outcomes: [begun, loggedIn, refreshed], scope: first.scope ?? null, tokens }));
