import type { FastifyInstance } from 'fastify';
import { ASSERTION_ALGORITHMS } from './client-assertion.ts';
import { DEVICE_CODE_GRANT_TYPE } from './request-schemas.ts';

/** What the token endpoint gives tokens for. */
export const GRANT_TYPES = ['client_credentials', 'refresh_token', DEVICE_CODE_GRANT_TYPE] as const;

/** How an appliance may say who it is, at every endpoint that asks. */
export const CLIENT_AUTH_METHODS = ['client_secret_basic', 'client_secret_post', 'private_key_jwt'] as const;

/** RFC 8414. The issuer is the address that was asked: its Host has been checked by now. */
export function serveMetadataEndpoint(app: FastifyInstance): void {
  app.get('/.well-known/oauth-authorization-server', { exposeHeadRoute: true }, async ({ host }) => ({
    issuer: `https://${host}`,
    token_endpoint: `https://${host}/oauth/token`,
    device_authorization_endpoint: `https://${host}/oauth/device_authorization`,
    registration_endpoint: `https://${host}/oauth/register`,
    revocation_endpoint: `https://${host}/oauth/revoke`,
    grant_types_supported: GRANT_TYPES,
    // Required, and not to be empty (RFC 8414, 2 and 3.2); there is no authorization endpoint to answer any.
    response_types_supported: ['none'],
    token_endpoint_auth_methods_supported: CLIENT_AUTH_METHODS,
    token_endpoint_auth_signing_alg_values_supported: ASSERTION_ALGORITHMS,
    revocation_endpoint_auth_methods_supported: CLIENT_AUTH_METHODS,
    revocation_endpoint_auth_signing_alg_values_supported: ASSERTION_ALGORITHMS,
  }));
}
