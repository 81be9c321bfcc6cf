import { describeOperation, type JsonObject } from '../../system/http/openapi.ts';
import { apiOperations } from '../api/api.ts';
import type { EmulatorOperation } from '../api/operation.ts';
import { consoleOperations } from '../console/console.ts';
import type { EmulatorOrigins } from '../portal.ts';
import { oauth2Operations } from './oauth2-operations.ts';
import { pageOperations } from './page-operations.ts';
import { portalOperations } from './portal-operations.ts';

/** All operations of an emulator; those of the portal come first. */
export const emulatorOperations: readonly EmulatorOperation[] = [
  ...portalOperations,
  ...oauth2Operations,
  ...pageOperations,
  ...apiOperations,
  ...consoleOperations,
];

/**
 * The OpenAPI 3.1 description of the portal's endpoints and of the emulator's API. It is generated from the schemas
 * that check the requests.
 * @param origins the emulator's addresses
 * @param version of the program
 */
export function openApiDocument(origins: EmulatorOrigins, version: string): JsonObject {
  const paths: Record<string, JsonObject> = {};
  for (const operation of emulatorOperations) {
    const path = paths[operation.path] ?? {};
    paths[operation.path] = path;
    const frontend = { url: origins.frontend, description: '{frontend_url}' };
    if (operation.origin === 'frontend') path['servers'] = [frontend];
    if (operation.origin === 'both') path['servers'] = [{ url: origins.base, description: '{base_url}' }, frontend];
    path[operation.method] = describeEmulatorOperation(operation);
  }
  return {
    openapi: '3.1.0',
    info: {
      title: 'Latchkey portal emulator',
      version,
      description:
        'The OAuth 2.0 helper endpoints and token endpoint of an emulated portal, a generic OAuth 2.0 server under ' +
        '/oauth2/ of the frontend origin (of each further issuer NAME also under /NAME/oauth2/), and the API of the emulator under ' +
        '/_emulator/. Unknown paths get 404, other methods 405 with Allow, and bodies over 64 KiB 413. A client that ' +
        'exceeds the rate limit in the settings gets 429 with Retry-After. Web pages of another origin get 403 if ' +
        'they try to change something under /_emulator/, and requests for a foreign host name get 421. The setting ' +
        'error_body changes the body of errors of the portal, and a fault can replace any response.',
    },
    servers: [{ url: origins.base, description: '{base_url}' }],
    tags: [
      { name: 'portal', description: 'The endpoints that clients of the portal use' },
      { name: 'emulator', description: 'The API that tests and people use' },
    ],
    paths,
    components: {
      securitySchemes: {
        client: {
          type: 'http',
          scheme: 'basic',
          description: 'RFC 6749, 2.3.1; or client_id and client_secret in the form',
        },
        bearer: { type: 'http', scheme: 'bearer' },
      },
    },
  };
}

function describeEmulatorOperation(operation: EmulatorOperation): JsonObject {
  const { path, security } = operation;
  const tag = path.startsWith('/_emulator/') ? 'emulator' : 'portal';
  return describeOperation(
    operation,
    tag,
    security && (security === 'client' ? [{ client: [] }, {}] : [{ bearer: [] }]),
  );
}
