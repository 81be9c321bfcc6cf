import { exportJWK, generateKeyPair } from 'jose';
import { describe } from 'vitest';
import { startOidcProvider } from '../../support/oauth-servers/oidc-provider.ts';
import { testLogins } from './hub-logins.ts';
import { portalTable } from './hub-portal.ts';

const KEY_FILE = 'hub.key';

describe('a hub at oidc-provider', async () => {
  const { publicKey, privateKey } = await generateKeyPair('ES256', { extractable: true });
  const key = JSON.stringify(await exportJWK(privateKey));

  testLogins({
    start: async (redirectUris) => startOidcProvider({ redirectUris, publicKey: await exportJWK(publicKey) }),
    methods: {
      basic: (server) => portalTable(server, { client_auth: 'basic' }),
      post: (server) => portalTable(server, { client_auth: 'post', client_id: server.clientIds.post }),
      none: (server) => portalTable(server, { client_auth: 'none', client_id: server.clientIds.none }, {}),
      'private-key-jwt': (server) => {
        const client = { client_auth: 'private_key_jwt', client_id: server.clientIds.privateKeyJwt };
        return portalTable(server, { ...client, client_key_file: KEY_FILE }, { [KEY_FILE]: key });
      },
    },
    logins: ['device', 'redirect', 'paste'],
  });
});
