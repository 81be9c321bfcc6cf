// oidc-provider's client_credentials over HTTPS: opaque tokens, each kept by its own in-memory adapter. Arguments: a file with
// TLS options (JSON, the ticket keys as base64), a client's id and secret, and how many refresh tokens to make for it.
import { readFileSync } from 'node:fs';
import { createServer } from 'node:https';
import Provider from 'oidc-provider';

const [file, clientId, clientSecret, count = '0'] = process.argv.slice(2);
const { ticketKeys, ...tls } = JSON.parse(readFileSync(file, 'utf8'));
const server = createServer({ ...tls, ticketKeys: Buffer.from(ticketKeys, 'base64') });
server.listen(0, '127.0.0.1', async () => {
  const { port } = server.address();
  const provider = new Provider(`https://127.0.0.1:${port}`, {
    clients: [
      {
        client_id: clientId,
        client_secret: clientSecret,
        grant_types: ['client_credentials', 'authorization_code', 'refresh_token'],
        redirect_uris: ['https://127.0.0.1:1/callback'],
        token_endpoint_auth_method: 'client_secret_basic',
      },
    ],
    scopes: ['openid', 'offline_access', 'Monitoring'],
    ttl: { AccessToken: 86400, ClientCredentials: 86400, RefreshToken: 86400, Grant: 86400 },
    features: { devInteractions: { enabled: false }, clientCredentials: { enabled: true } },
    findAccount: (_ctx, accountId) => ({ accountId, claims: () => ({ sub: accountId }) }),
  });
  server.on('request', provider.callback());
  const client = await provider.Client.find(clientId);
  const tokens = [];
  for (let i = 0; i < Number(count); i += 1) {
    const accountId = `user-${i}`;
    const scope = 'openid offline_access Monitoring';
    const grant = new provider.Grant({ accountId, clientId });
    grant.addOIDCScope(scope);
    const grantId = await grant.save();
    tokens.push(
      await new provider.RefreshToken({ accountId, client, grantId, gty: 'authorization_code', scope }).save(),
    );
  }
  console.log(JSON.stringify({ port, path: '/token', tokens }));
});
