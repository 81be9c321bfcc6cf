import {
  ClientSecretBasic,
  ClientSecretPost,
  clientCredentialsGrantRequest,
  discoveryRequest,
  processClientCredentialsResponse,
  processDiscoveryResponse,
} from 'oauth4webapi';
import { converse } from './conversation.ts';

await converse(async ({ hub, client_id, client_secret, authentication, scope }) => {
  const issuer = new URL(hub);
  const server = await processDiscoveryResponse(issuer, await discoveryRequest(issuer, { algorithm: 'oauth2' }));
  const client = { client_id };
  const method = authentication === 'basic' ? ClientSecretBasic(client_secret) : ClientSecretPost(client_secret);
  const response = await clientCredentialsGrantRequest(server, client, method, { scope });
  const token = await processClientCredentialsResponse(server, client, response);
  return { access_token: token.access_token, expires_in: token.expires_in, scope: token.scope };
});
