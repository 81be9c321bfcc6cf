// oidc-provider with its own in-memory adapter and its own pages for logins, over HTTP. Argument: its clients and the
// lifetime of access tokens as JSON. Prints its port.
import { createServer } from 'node:http';
import Provider from 'oidc-provider';

const { clients, accessTokenTtl, scopes } = JSON.parse(process.argv[2]);
const server = createServer();
server.listen(0, '127.0.0.1', () => {
  const { port } = server.address();
  const provider = new Provider(`http://127.0.0.1:${port}`, {
    clients,
    scopes: ['openid', 'offline_access', ...scopes],
    ttl: {
      AccessToken: accessTokenTtl,
      RefreshToken: 86400,
      Grant: 86400,
      Session: 3600,
      Interaction: 3600,
      DeviceCode: 600,
    },
    rotateRefreshToken: true,
    issueRefreshToken: async (_, client) => client.grantTypeAllowed('refresh_token'),
    expiresWithSession: () => false,
    pkce: { required: (_, client) => client.grantTypeAllowed('authorization_code') },
    cookies: { keys: ['key-of-the-cookies'] },
    features: {
      devInteractions: { enabled: true },
      deviceFlow: { enabled: true },
      revocation: { enabled: true },
      introspection: { enabled: true },
    },
  });

  server.on('request', provider.callback());
  console.log(port);
});
