import { describeOperation, type JsonObject } from '../../system/http/openapi.ts';
import { oauthOperations } from './oauth-operations.ts';
import type { HubOperation } from './operation.ts';
import { pageOperations } from './page-operations.ts';

/** The origins of a hub. */
export interface HubOrigins {
  /** Without a trailing slash. */
  readonly http: string;
  readonly https: string;
}

/** All operations of a hub on the home network, the OAuth endpoints first. */
export const hubOperations: readonly HubOperation[] = [...oauthOperations, ...pageOperations];

/** Computed once, so that repeated requests cost the hub only the response. */
const DESCRIBED_OPERATIONS = hubOperations.map((operation) => {
  const { path, ports, method, security } = operation;
  const tag = oauthOperations.includes(operation) ? 'oauth' : 'pages';
  return { path, ports, method, described: describeOperation(operation, tag, security && [{ [security]: [] }, {}]) };
});

/**
 * The OpenAPI 3.1 description of a hub's endpoints on the home network, generated from the schemas that validate
 * requests.
 * @param version the program's version
 */
export function openApiDocument(origins: HubOrigins, version: string): JsonObject {
  const paths: Record<string, JsonObject> = {};
  for (const { path, ports, method, described } of DESCRIBED_OPERATIONS) {
    const item = paths[path] ?? {};
    paths[path] = item;
    item[method] = ports.includes('http')
      ? { ...described, servers: ports.map((port) => ({ url: origins[port] })) }
      : described;
  }
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
    servers: [{ url: origins.https }],
    tags: [
      { name: 'oauth', description: 'OAuth endpoints for appliances' },
      { name: 'pages', description: 'Pages for browsers, and other endpoints' },
    ],
    paths,
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
