// Unmodified @azure/msal-node: logs in, renews its tokens, and gets access of its own. Prints what it got as JSON. The
// server logs its user in without a page; MSAL accepts only servers with HTTPS.
import { ConfidentialClientApplication, CryptoProvider } from '@azure/msal-node';

const { ISSUER, CLIENT_ID, CLIENT_SECRET, REDIRECT_URI } = process.env;
const app = new ConfidentialClientApplication({
  auth: {
    clientId: CLIENT_ID,
    clientSecret: CLIENT_SECRET,
    authority: ISSUER,
    knownAuthorities: [new URL(ISSUER).host],
  },
  system: { protocolMode: 'OIDC' },
});
const crypto = new CryptoProvider();
const { verifier, challenge } = await crypto.generatePkceCodes();
const nonce = crypto.createNewGuid();
const request = { scopes: ['read'], redirectUri: REDIRECT_URI };
const address = await app.getAuthCodeUrl({
  ...request,
  ...{ codeChallenge: challenge, codeChallengeMethod: 'S256', nonce, loginHint: 'alice' },
});
const { headers } = await fetch(address, { redirect: 'manual' });
const code = new URL(headers.get('location')).searchParams.get('code');
const first = await app.acquireTokenByCode({ ...request, code, codeVerifier: verifier, nonce });
const renewed = await app.acquireTokenSilent({ account: first.account, scopes: ['read'], forceRefresh: true });
const own = await app.acquireTokenByClientCredential({ scopes: ['read'] });
console.log(
  JSON.stringify({
    user: first.account.username,
    nonce: first.idTokenClaims.nonce === nonce,
    scopes: first.scopes,
    tokens: [first, renewed, own].map(({ accessToken }) => accessToken),
  }),
);
