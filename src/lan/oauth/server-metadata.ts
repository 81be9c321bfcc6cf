import type { FastifyInstance } from 'fastify';
import { DEVICE_CODE_GRANT_TYPE } from './request-schemas.ts';

/** The grant types of the token endpoint. */
export const GRANT_TYPES = ['client_credentials', 'refresh_token', DEVICE_CODE_GRANT_TYPE] as const;

/** The client authentication methods, the same at every endpoint that requires authentication. */
export const CLIENT_AUTH_METHODS = ['client_secret_basic', 'client_secret_post', 'private_key_jwt'] as const;

/** The signature algorithms of `private_key_jwt`: only asymmetric ones, because the hub stores no shared key. */
export const ASSERTION_ALGORITHMS = ['ES256', 'EdDSA', 'Ed25519', 'PS256', 'RS256'];

/** RFC 8414, 3. */
export const METADATA_PATH = '/.well-known/oauth-authorization-server';

/**
 * Registers the metadata endpoint (RFC 8414). The issuer is the origin of the request, whose Host was checked before.
 */
export function serveMetadataEndpoint(app: FastifyInstance): void {
  app.get(METADATA_PATH, { exposeHeadRoute: true }, async ({ protocol, host }) => {
    const issuer = `${protocol}://${host}`;
    return {
      issuer,
      token_endpoint: `${issuer}/oauth/token`,
      device_authorization_endpoint: `${issuer}/oauth/device_authorization`,
      registration_endpoint: `${issuer}/oauth/register`,
      revocation_endpoint: `${issuer}/oauth/revoke`,
      grant_types_supported: GRANT_TYPES,
      // Required and never empty (RFC 8414, 2 and 3.2), although there is no authorization endpoint.
      response_types_supported: ['none'],
      token_endpoint_auth_methods_supported: CLIENT_AUTH_METHODS,
      token_endpoint_auth_signing_alg_values_supported: ASSERTION_ALGORITHMS,
      revocation_endpoint_auth_methods_supported: CLIENT_AUTH_METHODS,
      revocation_endpoint_auth_signing_alg_values_supported: ASSERTION_ALGORITHMS,
    };
  });
}
