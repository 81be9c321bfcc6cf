import { describeOperation, type JsonObject } from '../../system/http/openapi.ts';
import { oauthOperations } from './oauth-operations.ts';
import type { HubOperation } from './operation.ts';
import { pageOperations } from './page-operations.ts';

/** Where a hub is reached. */
export interface HubOrigins {
  /** Without a trailing slash. */
  readonly http: string;
  readonly https: string;
}

/** Every operation of a hub on the home network, the OAuth server's first. */
export const hubOperations: readonly HubOperation[] = [...oauthOperations, ...pageOperations];

/** Made once: who asks again and again costs the hub no more than an answer. */
const DESCRIBED_OPERATIONS = hubOperations.map((operation) => {
  const { path, ports, method, security } = operation;
  const tag = oauthOperations.includes(operation) ? 'oauth' : 'pages';
  return { path, ports, method, described: describeOperation(operation, tag, security && [{ [security]: [] }, {}]) };
});

/**
 * The OpenAPI 3.1 description of what a hub serves on the home network, made from the schemas that requests are checked
 * with.
 * @param version of the program
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
        'An OAuth 2.0 authorization server for the appliances of a home. Paths that do not exist are answered 404, ' +
        'other methods 405 with Allow, bodies over 16 KiB 413, requests that are no HTTP 400, and requests for a host ' +
        "name that is not the hub's 421.",
    },
    servers: [{ url: origins.https }],
    tags: [
      { name: 'oauth', description: 'What appliances use' },
      { name: 'pages', description: 'What people come to, and what else there is' },
    ],
    paths,
    components: {
      securitySchemes: {
        client: {
          type: 'http',
          scheme: 'basic',
          description: 'client_secret_basic; client_secret_post and private_key_jwt are in the form',
        },
        invite: { type: 'http', scheme: 'bearer', description: 'An initial access token (latchkey invite)' },
      },
    },
  };
}
