import { join } from 'node:path';
import { exportJWK, generateKeyPair, type JWK } from 'jose';
import { describe } from 'vitest';
import { TOKEN_LIFETIME, testServer } from './server-tests.ts';
import { visitForms } from './servers/form-visitor.ts';
import { APPLIANCE_SCOPES, CLIENT, type OAuthServer, type OAuthServerOptions, USER } from './servers/oauth-server.ts';
import { startServerOnOwnPort } from './servers/server-program.ts';

interface OidcProviderOptions extends OAuthServerOptions {
  /** The public key of the client that authenticates by a signed assertion (RFC 7523). */
  readonly publicKey: JWK;
}

/** The same client again, registered once for each way to authenticate. */
interface OidcProviderClients {
  readonly basic: string;
  readonly post: string;
  /** A public client. */
  readonly none: string;
  readonly privateKeyJwt: string;
}

/** oidc-provider: rotates refresh tokens, and revokes the grant if one is used twice. */
interface OidcProvider extends OAuthServer, AsyncDisposable {
  /** Client ids; the secret is that of `client`, which is `basic`. */
  readonly clientIds: OidcProviderClients;
}

/** Starts oidc-provider in its own process. */
async function startOidcProvider({
  redirectUris,
  accessTokenTtl,
  publicKey,
}: OidcProviderOptions): Promise<OidcProvider> {
  const clientIds = { basic: CLIENT.id, post: 'hub-post', none: 'hub-public', privateKeyJwt: 'hub-assertion' };
  const secret = { client_secret: CLIENT.secret };
  const clients = [
    { client_id: clientIds.basic, ...secret, token_endpoint_auth_method: 'client_secret_basic' },
    { client_id: clientIds.post, ...secret, token_endpoint_auth_method: 'client_secret_post' },
    { client_id: clientIds.none, token_endpoint_auth_method: 'none' },
    {
      client_id: clientIds.privateKeyJwt,
      token_endpoint_auth_method: 'private_key_jwt',
      jwks: { keys: [publicKey] },
    },
  ].map((client) => ({
    ...client,
    redirect_uris: redirectUris,
    grant_types: ['authorization_code', 'refresh_token', 'urn:ietf:params:oauth:grant-type:device_code'],
  }));
  const settings = { clients, accessTokenTtl, scopes: APPLIANCE_SCOPES };
  const program = await startServerOnOwnPort('oidc-provider', [
    process.execPath,
    join(import.meta.dirname, 'servers/oidc-provider-program.js'),
    JSON.stringify(settings),
  ]);
  const { origin: issuer } = program;
  return {
    issuer,
    endpoints: {
      authorization: `${issuer}/auth`,
      token: `${issuer}/token`,
      revocation: `${issuer}/token/revocation`,
      introspection: `${issuer}/token/introspection`,
    },
    client: CLIENT,
    clientIds,
    async loginByScript(url) {
      const end = await visitForms(url, { login: USER.name, password: USER.password });
      if (end.text !== null && !end.text.includes('Sign-in Success')) throw new Error(`login failed: ${end.text}`);
      return end.url;
    },
    [Symbol.asyncDispose]: () => program[Symbol.asyncDispose](),
  };
}

const KEY_FILE = 'hub.key';

describe('a hub at oidc-provider', async () => {
  const { publicKey, privateKey } = await generateKeyPair('ES256', { extractable: true });
  const key = JSON.stringify(await exportJWK(privateKey));

  testServer<OidcProvider>({
    start: async (redirectUris, parts) =>
      parts.use(
        await startOidcProvider({
          redirectUris,
          publicKey: await exportJWK(publicKey),
          accessTokenTtl: TOKEN_LIFETIME,
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
