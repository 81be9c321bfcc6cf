import { ClientCredentials } from 'simple-oauth2';
import { type CapabilityInput, serveTasks } from './client-protocol.ts';

/** The library does not read metadata: the endpoints are configured. */
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
  client_secret_basic: async (input) => (await client(input).getToken({ scope: input.scope })).token,
  client_secret_post: async (input) => (await client(input, 'body').getToken({ scope: input.scope })).token,
  async refresh_token(input) {
    const { access_token, refresh_token } = input;
    const old = client(input).createToken({ access_token, refresh_token, expires_in: 0 });
    return (await old.refresh()).token;
  },
  async revocation(input) {
    await client(input).createToken({ access_token: input.access_token }).revoke('access_token');
  },
});
