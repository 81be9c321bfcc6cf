import {
  type ClientAuth,
  ClientSecretBasic,
  ClientSecretPost,
  type Configuration,
  clientCredentialsGrant,
  discovery,
  dynamicClientRegistration,
  initiateDeviceAuthorization,
  PrivateKeyJwt,
  pollDeviceAuthorizationGrant,
  refreshTokenGrant,
  tokenRevocation,
} from 'openid-client';
import { type CapabilityInput, serveTasks, showUser } from './client-protocol.ts';

const P256 = { name: 'ECDSA', namedCurve: 'P-256' };

function hub({ issuer, client_id, client_secret }: CapabilityInput, auth?: ClientAuth): Promise<Configuration> {
  return discovery(new URL(issuer), client_id, undefined, auth ?? ClientSecretBasic(client_secret), {
    algorithm: 'oauth2',
  });
}

await serveTasks({
  discovery: async (input) => (await hub(input)).serverMetadata(),
  client_secret_basic: async (input) => clientCredentialsGrant(await hub(input), { scope: input.scope }),
  client_secret_post: async (input) =>
    clientCredentialsGrant(await hub(input, ClientSecretPost(input.client_secret)), { scope: input.scope }),
  async private_key_jwt(input) {
    const key = await crypto.subtle.importKey('jwk', input.key, P256, false, ['sign']);
    return clientCredentialsGrant(await hub(input, PrivateKeyJwt(key)));
  },
  async device_flow(input) {
    const known = await hub(input);
    const device = await initiateDeviceAuthorization(known, { scope: input.scope });
    showUser(device);
    return pollDeviceAuthorizationGrant(known, device);
  },
  refresh_token: async (input) => refreshTokenGrant(await hub(input), input.refresh_token),
  async registration({ issuer, metadata, initial_access_token }) {
    const registered = await dynamicClientRegistration(new URL(issuer), metadata, undefined, {
      algorithm: 'oauth2',
      ...(initial_access_token === null ? {} : { initialAccessToken: initial_access_token }),
    });
    return registered.clientMetadata();
  },
  revocation: async (input) => tokenRevocation(await hub(input), input.access_token),
});
