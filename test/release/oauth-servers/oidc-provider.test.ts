import { exportJWK, generateKeyPair } from 'jose';
import { describe } from 'vitest';
import { TOKEN_LIFETIME, testServer } from './server-tests.ts';
import { type OidcProvider, startOidcProvider } from './servers/oidc-provider.ts';

const KEY_FILE = 'hub.key';

describe('a hub at oidc-provider', async () => {
  const { publicKey, privateKey } = await generateKeyPair('ES256', { extractable: true });
  const key = JSON.stringify(await exportJWK(privateKey));

  testServer<OidcProvider>({
    start: async (redirectUris, parts) =>
      parts.use(
        await startOidcProvider({
          ...{ redirectUris, publicKey: await exportJWK(publicKey), accessTokenTtl: TOKEN_LIFETIME },
        }),
      ),
    methods: {
      basic: () => ({ keys: { client_auth: 'basic' } }),
      post: ({ clientIds }) => ({ keys: { client_auth: 'post', client_id: clientIds.post } }),
      none: ({ clientIds }) => ({ keys: { client_auth: 'none', client_id: clientIds.none }, secrets: {} }),
      'private-key-jwt': ({ clientIds }) => ({
        keys: { client_auth: 'private_key_jwt', client_id: clientIds.privateKeyJwt, client_key_file: KEY_FILE },
        secrets: { [KEY_FILE]: key },
      }),
    },
    logins: ['device', 'redirect', 'paste'],
    refreshes: { retry_lost_answer: 'late' },
    reuse: 'refused',
  });
});
