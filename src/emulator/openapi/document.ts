import { describeOperation, type JsonObject } from '../../system/http/openapi.ts';
import { apiOperations } from '../api/api.ts';
import type { EmulatorOperation } from '../api/operation.ts';
import type { EmulatorOrigins } from '../portal.ts';
import { portalOperations } from './portal-operations.ts';

/** Every operation of a running emulator, the portal's first. */
export const emulatorOperations: readonly EmulatorOperation[] = [...portalOperations, ...apiOperations];

/**
 * The OpenAPI 3.1 description of the portal's endpoints and of the emulator's own API, made from the schemas that
 * requests are checked with.
 * @param origins where the emulator is reached
 * @param version of the program
 */
export function openApiDocument(origins: EmulatorOrigins, version: string): JsonObject {
  const paths: Record<string, JsonObject> = {};
  for (const operation of emulatorOperations) {
    const path = paths[operation.path] ?? {};
    paths[operation.path] = path;
    if (operation.origin === 'frontend') path['servers'] = [{ url: origins.frontend, description: '{frontend_url}' }];
    path[operation.method] = describeEmulatorOperation(operation);
  }
  return {
    openapi: '3.1.0',
    info: {
      title: 'Latchkey portal emulator',
      version,
      description:
        'The OAuth 2.0 helper and token service of the portal, emulated, and under /_emulator/ what only an emulator ' +
        'has. Paths that do not exist are answered 404, other methods 405 with Allow, bodies over 64 KiB 413. ' +
        'Beyond the rate limit that was set, the portal answers 429 with Retry-After; web pages of another origin that ' +
        'would change something under /_emulator/ are answered 403, and requests for a host name that is not its own ' +
        '421. The setting error_body changes what errors of the ' +
        'portal hold, and a fault that was asked for may answer anything.',
    },
    servers: [{ url: origins.base, description: '{base_url}' }],
    tags: [
      { name: 'portal', description: 'What clients of the portal use' },
      { name: 'emulator', description: 'What tests and people use' },
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
