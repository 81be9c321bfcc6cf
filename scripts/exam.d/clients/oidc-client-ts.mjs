import { OidcClient, User, UserManager } from 'oidc-client-ts';
import { env, known, redirected, run } from './program.mjs';

const settings = {
  authority: env.OAUTH_ISSUER ?? '',
  client_id: known.id,
  client_secret: known.secret || undefined,
  redirect_uri: known.redirectUri,
  scope: env.OAUTH_SCOPE,
};
// As in a browser, but the program itself asks for new tokens. Without a window it stores everything in memory.
const users = new UserManager({ ...settings, automaticSilentRenew: false });
const toResponse = ({ access_token, refresh_token }) => ({ access_token, ...(refresh_token && { refresh_token }) });

async function login() {
  const client = new OidcClient(settings);
  const { url } = await client.createSigninRequest({});
  return toResponse(await client.processSigninResponse(String(await redirected(url))));
}

await run({
  async refresh({ refresh_token }) {
    await users.storeUser(new User({ access_token: '', token_type: 'Bearer', profile: {}, refresh_token }));
    return toResponse(await users.signinSilent());
  },
  login: env.OAUTH_AUTHORIZATION_ENDPOINT ? login : undefined,
  isFinal: ({ error }) => error === 'invalid_grant',
});
