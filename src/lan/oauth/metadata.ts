import type { FastifyInstance } from 'fastify';

/** RFC 8414. The issuer is the address that was asked: its Host has been checked by now. */
export function serveMetadata(app: FastifyInstance): void {
  app.get('/.well-known/oauth-authorization-server', async ({ host }) => ({
    issuer: `https://${host}`,
    token_endpoint: `https://${host}/oauth/token`,
    grant_types_supported: ['client_credentials'],
    response_types_supported: [],
    token_endpoint_auth_methods_supported: ['client_secret_basic', 'client_secret_post'],
  }));
}
