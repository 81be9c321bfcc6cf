import { describeOperation, type JsonObject } from '../../system/http/openapi.ts';
import { oauthOperations } from './oauth-operations.ts';

/**
 * The OpenAPI 3.1 description of a hub's OAuth endpoints, generated from the schemas that validate requests.
 * @param version the program's version
 */
export function openApiDocument(version: string): JsonObject {
  const paths = oauthOperations.map((operation) => {
    const { path, method, security } = operation;
    return [path, { [method]: describeOperation(operation, 'oauth', security && [{ [security]: [] }, {}]) }];
  });
  return {
    openapi: '3.1.0',
    info: {
      title: 'Latchkey hub',
      version,
      description:
        'An OAuth 2.0 authorization server for the appliances of a home. All paths: 404 for an unknown path, 405 with ' +
        'Allow for another method, 413 for a body over 16 KiB, 400 for a request that is not valid HTTP, and 421 for a ' +
        "host name that is not the hub's.",
    },
    servers: [{ url: '/', description: "The hub's HTTPS port, 8443 by default" }],
    tags: [{ name: 'oauth', description: 'OAuth endpoints for appliances' }],
    paths: Object.fromEntries(paths),
    components: {
      securitySchemes: {
        client: {
          type: 'http',
          scheme: 'basic',
          description: 'client_secret_basic; client_secret_post and private_key_jwt use form parameters instead',
        },
        invite: { type: 'http', scheme: 'bearer', description: 'An initial access token (latchkey invite)' },
      },
    },
  };
}
