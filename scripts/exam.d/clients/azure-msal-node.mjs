import { ConfidentialClientApplication, CryptoProvider, PublicClientApplication } from '@azure/msal-node';
import { env, known, load, redirected, save } from './program.mjs';

// It refreshes for accounts of its cache, so that the program begins with a login in all groups.
if (!env.OAUTH_AUTHORIZATION_ENDPOINT) process.exit(1);
delete env.OAUTH_REFRESH_TOKEN;
const Application = known.secret ? ConfidentialClientApplication : PublicClientApplication;
const app = new Application({
  auth: {
    clientId: known.id,
    ...(known.secret && { clientSecret: known.secret }),
    authority: env.OAUTH_ISSUER,
    knownAuthorities: [new URL(env.OAUTH_ISSUER).host],
  },
  // Its cache holds the refresh tokens, which it does not show.
  cache: {
    cachePlugin: {
      async beforeCacheAccess({ tokenCache }) {
        const { cache } = load() ?? {};
        if (cache !== undefined) tokenCache.deserialize(cache);
      },
      async afterCacheAccess({ tokenCache, cacheHasChanged }) {
        if (cacheHasChanged) save({ cache: tokenCache.serialize() });
      },
    },
  },
  system: { protocolMode: 'OIDC' },
});
const scopes = [];

async function login() {
  const crypto = new CryptoProvider();
  const { verifier, challenge } = await crypto.generatePkceCodes();
  const [state, nonce] = [crypto.createNewGuid(), crypto.createNewGuid()];
  const request = { scopes, redirectUri: known.redirectUri, state };
  const url = await app.getAuthCodeUrl({ ...request, nonce, codeChallenge: challenge, codeChallengeMethod: 'S256' });
  const answer = Object.fromEntries((await redirected(url)).searchParams);
  return app.acquireTokenByCode({ ...request, code: answer.code ?? '', codeVerifier: verifier, nonce }, answer);
}

/** @param forceRefresh whether the access token of the cache was refused */
async function acquire(forceRefresh) {
  const [account] = await app.getTokenCache().getAllAccounts();
  return account === undefined ? login() : app.acquireTokenSilent({ account, scopes, forceRefresh });
}

let forceRefresh = false;
for (; ; await new Promise((resolve) => setTimeout(resolve, 1000))) {
  try {
    const { accessToken } = await acquire(forceRefresh);
    const { status } = await fetch(env.API_URL, { headers: { authorization: `Bearer ${accessToken}` } });
    forceRefresh = status === 401;
  } catch (error) {
    console.error(error.message);
    if (error.errorCode === 'invalid_grant') process.exit(1);
  }
}
