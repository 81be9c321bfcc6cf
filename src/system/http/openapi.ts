import { toJsonSchema } from '@valibot/to-json-schema';
import type { GenericSchema, ObjectEntries, StrictObjectSchema } from 'valibot';

/** A JSON object of an OpenAPI document. */
export type JsonObject = Record<string, unknown>;

/** One response of an operation. Without `body` it has no body that a program would read. */
export interface ResponseDescription {
  readonly description: string;
  /** A schema of the JSON body, or the media type of another body. */
  readonly body?: GenericSchema | `text/${string}`;
  /** Descriptions of headers that matter to a client, by name. */
  readonly headers?: Readonly<Record<string, string>>;
}

/** A schema of path parameters or of a query. */
type ObjectSchema = StrictObjectSchema<ObjectEntries, undefined>;

/** One method of one path. */
export interface OperationDescription {
  readonly method: 'get' | 'post' | 'put' | 'patch' | 'delete';
  /** The path, with its parameters in braces (RFC 6570): `/grants/{id}`. */
  readonly path: string;
  /** The unique `operationId`, for code generators. */
  readonly id: string;
  readonly summary: string;
  readonly description?: string;
  readonly params?: ObjectSchema;
  readonly query?: ObjectSchema;
  readonly form?: GenericSchema;
  readonly json?: GenericSchema;
  /** By HTTP status. */
  readonly responses: Readonly<Record<number, ResponseDescription>>;
}

/**
 * The operation object of OpenAPI 3.1, generated from the schemas that validate requests.
 * @param security security schemes, one of which a request needs; an empty object if it may have none
 */
export function describeOperation(
  operation: OperationDescription,
  tag: string,
  security?: readonly JsonObject[],
): JsonObject {
  const { id, summary, description, params, query, form, json, responses } = operation;
  const parameters = [...parametersOf('path', params), ...parametersOf('query', query)];
  const body = form ?? json;
  const content = body && {
    [form ? 'application/x-www-form-urlencoded' : 'application/json']: { schema: jsonSchema(body) },
  };
  return {
    operationId: id,
    tags: [tag],
    summary,
    ...(description !== undefined && { description }),
    ...(parameters.length > 0 && { parameters }),
    ...(content && { requestBody: { required: true, content } }),
    ...(security && { security }),
    responses: Object.fromEntries(
      Object.entries(responses).map(([status, response]) => [status, responseObject(response)]),
    ),
  };
}

function parametersOf(location: 'path' | 'query', schemas: OperationDescription['query']): JsonObject[] {
  if (schemas === undefined) return [];
  const { properties = {}, required = [] } = toJsonSchema(schemas, JSON_SCHEMA_OPTIONS);
  return Object.entries(properties).map(([name, schema]) => {
    if (typeof schema === 'boolean') return { name, in: location };
    const { description, ...rest } = schema;
    return { name, in: location, required: required.includes(name), ...(description && { description }), schema: rest };
  });
}

function responseObject({ description, body, headers = {} }: ResponseDescription): JsonObject {
  const headerObjects = Object.entries(headers).map(([name, meaning]) => [
    name,
    { description: meaning, schema: { type: 'string' } },
  ]);
  const content =
    typeof body === 'string' ? { [body]: {} } : { 'application/json': { schema: body && jsonSchema(body) } };
  return {
    description,
    ...(headerObjects.length > 0 && { headers: Object.fromEntries(headerObjects) }),
    ...(body !== undefined && { content }),
  };
}

/** Checks that JSON Schema can't express are ignored; the descriptions mention them. */
const JSON_SCHEMA_OPTIONS = { target: 'draft-2020-12', typeMode: 'input', errorMode: 'ignore' } as const;

function jsonSchema(schema: GenericSchema): JsonObject {
  const { $schema: _, ...rest } = toJsonSchema(schema, JSON_SCHEMA_OPTIONS);
  return rest;
}
