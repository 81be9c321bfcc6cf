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
  discovery: async (given) => (await hub(given)).serverMetadata(),
  client_secret_basic: async (given) => clientCredentialsGrant(await hub(given), { scope: given.scope }),
  client_secret_post: async (given) =>
    clientCredentialsGrant(await hub(given, ClientSecretPost(given.client_secret)), { scope: given.scope }),
  async private_key_jwt(given) {
    const key = await crypto.subtle.importKey('jwk', given.key, P256, false, ['sign']);
    return clientCredentialsGrant(await hub(given, PrivateKeyJwt(key)));
  },
  async device_flow(given) {
    const known = await hub(given);
    const device = await initiateDeviceAuthorization(known, { scope: given.scope });
    showUser(device);
    return pollDeviceAuthorizationGrant(known, device);
  },
  refresh_token: async (given) => refreshTokenGrant(await hub(given), given.refresh_token),
  async registration({ issuer, metadata, initial_access_token }) {
    const registered = await dynamicClientRegistration(new URL(issuer), metadata, undefined, {
      algorithm: 'oauth2',
      ...(initial_access_token === null ? {} : { initialAccessToken: initial_access_token }),
    });
    return registered.clientMetadata();
  },
  revocation: async (given) => tokenRevocation(await hub(given), given.access_token),
});
