import { ClientSecretBasic, ClientSecretPost, clientCredentialsGrant, discovery } from 'openid-client';
import { converse } from './conversation.ts';

await converse(async ({ hub, client_id, client_secret, authentication, scope }) => {
  const method = authentication === 'basic' ? ClientSecretBasic(client_secret) : ClientSecretPost(client_secret);
  const hubKnown = await discovery(new URL(hub), client_id, undefined, method, { algorithm: 'oauth2' });
  const { access_token, expires_in, scope: granted } = await clientCredentialsGrant(hubKnown, { scope });
  return { access_token, expires_in, scope: granted };
});
