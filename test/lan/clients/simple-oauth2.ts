import { ClientCredentials } from 'simple-oauth2';
import { type CapabilityInput, serveTasks } from './client-protocol.ts';

/** The library knows no metadata: the addresses are set up in it. */
function client(
  { issuer, client_id, client_secret }: CapabilityInput,
  authorizationMethod: 'header' | 'body' = 'header',
) {
  return new ClientCredentials({
    client: { id: client_id, secret: client_secret },
    auth: { tokenHost: issuer, tokenPath: '/oauth/token', revokePath: '/oauth/revoke' },
    options: { authorizationMethod },
  });
}

await serveTasks({
  client_secret_basic: async (given) => (await client(given).getToken({ scope: given.scope })).token,
  client_secret_post: async (given) => (await client(given, 'body').getToken({ scope: given.scope })).token,
  async refresh_token(given) {
    const { access_token, refresh_token } = given;
    const old = client(given).createToken({ access_token, refresh_token, expires_in: 0 });
    return (await old.refresh()).token;
  },
  async revocation(given) {
    await client(given).createToken({ access_token: given.access_token }).revoke('access_token');
  },
});
