import { toJsonSchema } from '@valibot/to-json-schema';
import type { GenericSchema } from 'valibot';
import type { Origins } from '../portal.ts';
import { clockOperations } from './clock-operations.ts';
import { consoleOperations } from './console-operations.ts';
import { emulatorOperations } from './emulator-operations.ts';
import { faultOperations } from './fault-operations.ts';
import type { Answer, Operation } from './operation.ts';
import { portalOperations } from './portal-operations.ts';

/** A JSON object of the document. */
type Json = Record<string, unknown>;

/** Every operation of a running emulator, the portal's first. */
export const operations: readonly Operation[] = [
  ...portalOperations,
  ...emulatorOperations,
  ...clockOperations,
  ...faultOperations,
  ...consoleOperations,
];

/**
 * The OpenAPI 3.1 description of the portal's endpoints and of the emulator's own API, made from the schemas that
 * requests are checked with.
 * @param origins where the emulator is reached
 * @param version of the program
 */
export function openApiDocument(origins: Origins, version: string): Json {
  const paths: Record<string, Json> = {};
  for (const operation of operations) {
    const path = paths[operation.path] ?? {};
    paths[operation.path] = path;
    if (operation.origin === 'frontend') path['servers'] = [{ url: origins.frontend, description: '{frontend_url}' }];
    path[operation.method] = describe(operation);
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
        'would change something under /_emulator/ are answered 403. The setting error_body changes what errors of the ' +
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

function describe(operation: Operation): Json {
  const { id, summary, description, params, query, form, json, security, answers } = operation;
  const parameters = [...parametersOf('path', params), ...parametersOf('query', query)];
  const body = form ?? json;
  const content = body && {
    [form ? 'application/x-www-form-urlencoded' : 'application/json']: { schema: jsonSchema(body) },
  };
  return {
    operationId: id,
    tags: [operation.path.startsWith('/_emulator/') ? 'emulator' : 'portal'],
    summary,
    ...(description !== undefined && { description }),
    ...(parameters.length > 0 && { parameters }),
    ...(content && { requestBody: { required: true, content } }),
    ...(security && { security: security === 'client' ? [{ client: [] }, {}] : [{ bearer: [] }] }),
    responses: Object.fromEntries(Object.entries(answers).map(([status, answer]) => [status, response(answer)])),
  };
}

function parametersOf(place: 'path' | 'query', members: Operation['query']): Json[] {
  if (members === undefined) return [];
  const { properties = {}, required = [] } = toJsonSchema(members, WRITER);
  return Object.entries(properties).map(([name, schema]) => {
    if (typeof schema === 'boolean') return { name, in: place };
    const { description, ...rest } = schema;
    return { name, in: place, required: required.includes(name), ...(description && { description }), schema: rest };
  });
}

function response({ description, body, headers = {} }: Answer): Json {
  const header = Object.entries(headers).map(([name, says]) => [
    name,
    { description: says, schema: { type: 'string' } },
  ]);
  const content =
    typeof body === 'string' ? { [body]: {} } : { 'application/json': { schema: body && jsonSchema(body) } };
  return {
    description,
    ...(header.length > 0 && { headers: Object.fromEntries(header) }),
    ...(body !== undefined && { content }),
  };
}

/** What JSON Schema can't say (a predicate of ours) is left to the text. */
const WRITER = { target: 'draft-2020-12', typeMode: 'input', errorMode: 'ignore' } as const;

function jsonSchema(schema: GenericSchema): Json {
  const { $schema: _, ...rest } = toJsonSchema(schema, WRITER);
  return rest;
}
