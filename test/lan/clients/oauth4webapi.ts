import * as oauth from 'oauth4webapi';
import { type CapabilityInput, serveTasks, showUser } from './client-protocol.ts';

async function discover({ issuer }: CapabilityInput): Promise<oauth.AuthorizationServer> {
  const url = new URL(issuer);
  return oauth.processDiscoveryResponse(url, await oauth.discoveryRequest(url, { algorithm: 'oauth2' }));
}

const clientOf = ({ client_id }: CapabilityInput): oauth.Client => ({ client_id });

async function token(input: CapabilityInput, authentication: oauth.ClientAuth, parameters: Record<string, string>) {
  const server = await discover(input);
  const response = await oauth.clientCredentialsGrantRequest(server, clientOf(input), authentication, parameters);
  return oauth.processClientCredentialsResponse(server, clientOf(input), response);
}

await serveTasks({
  discovery: discover,
  client_secret_basic: (input) => token(input, oauth.ClientSecretBasic(input.client_secret), { scope: input.scope }),
  client_secret_post: (input) => token(input, oauth.ClientSecretPost(input.client_secret), { scope: input.scope }),
  async private_key_jwt(input) {
    const key = await crypto.subtle.importKey('jwk', input.key, { name: 'ECDSA', namedCurve: 'P-256' }, false, [
      'sign',
    ]);
    return token(input, oauth.PrivateKeyJwt(key), {});
  },
  async device_flow(input) {
    const server = await discover(input);
    const authentication = oauth.ClientSecretBasic(input.client_secret);
    const deviceResponse = await oauth.deviceAuthorizationRequest(server, clientOf(input), authentication, {
      scope: input.scope,
    });
    const device = await oauth.processDeviceAuthorizationResponse(server, clientOf(input), deviceResponse);
    showUser(device);
    let interval = device.interval ?? 5;
    for (const end = Date.now() + device.expires_in * 1000; Date.now() < end; ) {
      await new Promise((resolve) => setTimeout(resolve, interval * 1000));
      const response = await oauth.deviceCodeGrantRequest(server, clientOf(input), authentication, device.device_code);
      try {
        return await oauth.processDeviceCodeResponse(server, clientOf(input), response);
      } catch (error) {
        if (!(error instanceof oauth.ResponseBodyError)) throw error;
        if (error.error === 'slow_down') interval += 5;
        else if (error.error !== 'authorization_pending') throw error;
      }
    }
    throw new Error('nobody logged in');
  },
  async refresh_token(input) {
    const server = await discover(input);
    const authentication = oauth.ClientSecretBasic(input.client_secret);
    const response = await oauth.refreshTokenGrantRequest(server, clientOf(input), authentication, input.refresh_token);
    return oauth.processRefreshTokenResponse(server, clientOf(input), response);
  },
  async registration(input) {
    const { metadata, initial_access_token } = input;
    const options = initial_access_token === null ? {} : { initialAccessToken: initial_access_token };
    const response = await oauth.dynamicClientRegistrationRequest(await discover(input), metadata, options);
    return oauth.processDynamicClientRegistrationResponse(response);
  },
  async revocation(input) {
    const server = await discover(input);
    const authentication = oauth.ClientSecretBasic(input.client_secret);
    const response = await oauth.revocationRequest(server, clientOf(input), authentication, input.access_token);
    return oauth.processRevocationResponse(response);
  },
});
