import * as oauth from 'oauth4webapi';
import { type CapabilityInput, serveTasks, showUser } from './client-protocol.ts';

async function discover({ issuer }: CapabilityInput): Promise<oauth.AuthorizationServer> {
  const url = new URL(issuer);
  return oauth.processDiscoveryResponse(url, await oauth.discoveryRequest(url, { algorithm: 'oauth2' }));
}

const clientOf = ({ client_id }: CapabilityInput): oauth.Client => ({ client_id });

async function token(given: CapabilityInput, authentication: oauth.ClientAuth, parameters: Record<string, string>) {
  const server = await discover(given);
  const response = await oauth.clientCredentialsGrantRequest(server, clientOf(given), authentication, parameters);
  return oauth.processClientCredentialsResponse(server, clientOf(given), response);
}

await serveTasks({
  discovery: discover,
  client_secret_basic: (given) => token(given, oauth.ClientSecretBasic(given.client_secret), { scope: given.scope }),
  client_secret_post: (given) => token(given, oauth.ClientSecretPost(given.client_secret), { scope: given.scope }),
  async private_key_jwt(given) {
    const key = await crypto.subtle.importKey('jwk', given.key, { name: 'ECDSA', namedCurve: 'P-256' }, false, [
      'sign',
    ]);
    return token(given, oauth.PrivateKeyJwt(key), {});
  },
  async device_flow(given) {
    const server = await discover(given);
    const authentication = oauth.ClientSecretBasic(given.client_secret);
    const begun = await oauth.deviceAuthorizationRequest(server, clientOf(given), authentication, {
      scope: given.scope,
    });
    const device = await oauth.processDeviceAuthorizationResponse(server, clientOf(given), begun);
    showUser(device);
    let interval = device.interval ?? 5;
    for (const end = Date.now() + device.expires_in * 1000; Date.now() < end; ) {
      await new Promise((resolve) => setTimeout(resolve, interval * 1000));
      const response = await oauth.deviceCodeGrantRequest(server, clientOf(given), authentication, device.device_code);
      try {
        return await oauth.processDeviceCodeResponse(server, clientOf(given), response);
      } catch (error) {
        if (!(error instanceof oauth.ResponseBodyError)) throw error;
        if (error.error === 'slow_down') interval += 5;
        else if (error.error !== 'authorization_pending') throw error;
      }
    }
    throw new Error('nobody logged in');
  },
  async refresh_token(given) {
    const server = await discover(given);
    const authentication = oauth.ClientSecretBasic(given.client_secret);
    const response = await oauth.refreshTokenGrantRequest(server, clientOf(given), authentication, given.refresh_token);
    return oauth.processRefreshTokenResponse(server, clientOf(given), response);
  },
  async registration(given) {
    const { metadata, initial_access_token } = given;
    const options = initial_access_token === null ? {} : { initialAccessToken: initial_access_token };
    const response = await oauth.dynamicClientRegistrationRequest(await discover(given), metadata, options);
    return oauth.processDynamicClientRegistrationResponse(response);
  },
  async revocation(given) {
    const server = await discover(given);
    const authentication = oauth.ClientSecretBasic(given.client_secret);
    const response = await oauth.revocationRequest(server, clientOf(given), authentication, given.access_token);
    return oauth.processRevocationResponse(response);
  },
});
