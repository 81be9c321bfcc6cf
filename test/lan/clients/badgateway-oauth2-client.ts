import { OAuth2Client, type OAuth2Token } from '@badgateway/oauth2-client';
import { type CapabilityInput, serveTasks } from './client-protocol.ts';

type Method = 'client_secret_basic' | 'client_secret_post';

function client({ issuer, client_id, client_secret }: CapabilityInput, authenticationMethod?: Method): OAuth2Client {
  return new OAuth2Client({
    server: issuer,
    clientId: client_id,
    clientSecret: client_secret,
    ...(authenticationMethod === undefined ? {} : { authenticationMethod }),
  });
}

function toTokenResponse({ accessToken, refreshToken, expiresAt, scope }: OAuth2Token) {
  return {
    access_token: accessToken,
    refresh_token: refreshToken,
    expires_in: expiresAt === null ? null : Math.round((expiresAt - Date.now()) / 1000),
    ...(scope === undefined ? {} : { scope: scope.join(' ') }),
  };
}

await serveTasks({
  async discovery(input) {
    const hub = client(input);
    return {
      issuer: input.issuer,
      token_endpoint: await hub.getEndpoint('tokenEndpoint'),
      revocation_endpoint: await hub.getEndpoint('revocationEndpoint'),
    };
  },
  client_secret_basic: async (input) =>
    toTokenResponse(await client(input, 'client_secret_basic').clientCredentials({ scope: input.scope.split(' ') })),
  client_secret_post: async (input) =>
    toTokenResponse(await client(input, 'client_secret_post').clientCredentials({ scope: input.scope.split(' ') })),
  async refresh_token(input) {
    const { access_token, refresh_token } = input;
    return toTokenResponse(
      await client(input).refreshToken({ accessToken: access_token, refreshToken: refresh_token, expiresAt: 0 }),
    );
  },
  revocation: (input) => client(input).revoke({ accessToken: input.access_token, refreshToken: null, expiresAt: null }),
});
