// oidc-provider with client_credentials over HTTPS: opaque tokens, stored by its in-memory adapter. Arguments: a file
// with TLS options (JSON), and a client's id and secret.
import { readFileSync } from 'node:fs';
import { createServer } from 'node:https';
import Provider from 'oidc-provider';

const [file, clientId, clientSecret] = process.argv.slice(2);
const server = createServer(JSON.parse(readFileSync(file, 'utf8')));
server.listen(0, '127.0.0.1', () => {
  const { port } = server.address();
  const provider = new Provider(`https://127.0.0.1:${port}`, {
    clients: [
      {
        client_id: clientId,
        client_secret: clientSecret,
        grant_types: ['client_credentials'],
        redirect_uris: [],
        response_types: [],
        token_endpoint_auth_method: 'client_secret_basic',
      },
    ],
    scopes: ['Monitoring'],
    ttl: { ClientCredentials: 86400 },
    features: { devInteractions: { enabled: false }, clientCredentials: { enabled: true } },
  });
  server.on('request', provider.callback());
  console.log(JSON.stringify({ port, path: '/token' }));
});
