import { ClientCredentials } from 'simple-oauth2';
import { converse } from './conversation.ts';

await converse(async ({ hub, client_id, client_secret, authentication, scope }) => {
  const client = new ClientCredentials({
    client: { id: client_id, secret: client_secret },
    auth: { tokenHost: hub, tokenPath: '/oauth/token' },
    options: { authorizationMethod: authentication === 'basic' ? 'header' : 'body' },
  });
  const { token } = await client.getToken({ scope });
  return { access_token: token['access_token'], expires_in: token['expires_in'], scope: token['scope'] };
});
