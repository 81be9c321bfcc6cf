// oidc-provider with its own in-memory adapter and its own pages for logins, over HTTP. Argument: its clients and the
// lifetime of access tokens as JSON. Prints its port. The control path counts and revokes refresh tokens.
import { createServer } from 'node:http';
import Provider from 'oidc-provider';

const { clients, accessTokenTtl, scopes, controlPath } = JSON.parse(process.argv[2]);
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

  /** Refresh tokens that were never used, by their ids. */
  const unused = new Map();
  provider.on('refresh_token.saved', (token) => unused.set(token.jti, token));
  for (const end of ['consumed', 'destroyed']) {
    provider.on(`refresh_token.${end}`, (token) => unused.delete(token.jti));
  }
  provider.on('grant.revoked', (_, grantId) => {
    for (const [id, token] of unused) if (token.grantId === grantId) unused.delete(id);
  });

  const respond = provider.callback();
  server.on('request', async (request, response) => {
    if (request.url !== controlPath) return respond(request, response);
    if (request.method === 'DELETE') for (const token of unused.values()) await token.destroy();
    response.end(String(unused.size));
  });
  console.log(port);
});
