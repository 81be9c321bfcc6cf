import type { FastifyInstance, FastifyRequest } from 'fastify';
import { DEVICE_CODE_GRANT_TYPE } from './request-schemas.ts';
import { CONNECTION_PATH } from './requested-connection.ts';

/** The grant types of the token endpoint. */
export const GRANT_TYPES = ['client_credentials', 'refresh_token', DEVICE_CODE_GRANT_TYPE] as const;

/** The client authentication methods, the same at every endpoint that requires authentication. */
export const CLIENT_AUTH_METHODS = ['client_secret_basic', 'client_secret_post', 'private_key_jwt'] as const;

/** The signature algorithms of `private_key_jwt`: only asymmetric ones, because the hub stores no shared key. */
export const ASSERTION_ALGORITHMS = ['ES256', 'EdDSA', 'Ed25519', 'PS256', 'RS256'];

const METADATA_PATH = '/.well-known/oauth-authorization-server';

/** Where clients look for the metadata: RFC 8414, 3, and 5 for those that know OpenID Connect alone. */
export const METADATA_PATHS = [
  METADATA_PATH,
  `${METADATA_PATH}${CONNECTION_PATH}`,
  '/.well-known/openid-configuration',
  `/.well-known/openid-configuration${CONNECTION_PATH}`,
  `${CONNECTION_PATH}/.well-known/openid-configuration`,
];

/**
 * Registers the metadata endpoint (RFC 8414). The issuer is the origin of the request, whose Host was checked before, or
 * the address of a connection there.
 */
export function serveMetadataEndpoint(app: FastifyInstance): void {
  for (const path of METADATA_PATHS) {
    app.get<{ Params: { connection?: string } }>(
      path,
      { exposeHeadRoute: true },
      async ({ protocol, host, params }) => {
        const origin = `${protocol}://${host}`;
        const issuer =
          params.connection === undefined ? origin : `${origin}/connections/${encodeURIComponent(params.connection)}`;
        return {
          issuer,
          authorization_endpoint: `${origin}/oauth/authorize`,
          token_endpoint: `${issuer}/oauth/token`,
          device_authorization_endpoint: `${issuer}/oauth/device_authorization`,
          registration_endpoint: `${origin}/oauth/register`,
          revocation_endpoint: `${issuer}/oauth/revoke`,
          grant_types_supported: GRANT_TYPES,
          // Required and never empty (RFC 8414, 2 and 3.2), although nobody can log in at the authorization endpoint.
          response_types_supported: ['none'],
          token_endpoint_auth_methods_supported: CLIENT_AUTH_METHODS,
          token_endpoint_auth_signing_alg_values_supported: ASSERTION_ALGORITHMS,
          revocation_endpoint_auth_methods_supported: CLIENT_AUTH_METHODS,
          revocation_endpoint_auth_signing_alg_values_supported: ASSERTION_ALGORITHMS,
        };
      },
    );
  }
}

/** Some clients demand an authorization endpoint, although they do not use it. A browser that is sent there learns why. */
export function serveAuthorizationEndpoint(app: FastifyInstance, page: (request: FastifyRequest) => string): void {
  app.get('/oauth/authorize', async (request, reply) => {
    const text = `Programs get their tokens from this hub without a browser. People log in on its page: ${page(request)}/\n`;
    return reply.code(400).type('text/plain; charset=utf-8').send(text);
  });
}
