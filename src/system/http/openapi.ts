import { toJsonSchema } from '@valibot/to-json-schema';
import type { GenericSchema, ObjectEntries, StrictObjectSchema } from 'valibot';

/** A JSON object of an OpenAPI document. */
export type JsonObject = Record<string, unknown>;

/** One answer of an operation. Without `body` it has none that a program would read. */
export interface ResponseDescription {
  readonly description: string;
  /** A schema of the JSON body, or the media type of another one. */
  readonly body?: GenericSchema | `text/${string}` | 'application/x-pem-file';
  /** Headers that matter to a client, with what each says. */
  readonly headers?: Readonly<Record<string, string>>;
}

/** Members by name: of a path, a query, a form or a JSON body. */
type ObjectSchema = StrictObjectSchema<ObjectEntries, undefined>;

/** One method of one path. */
export interface OperationDescription {
  readonly method: 'get' | 'post' | 'patch' | 'delete';
  /** With its parameters in braces (RFC 6570): `/callback/{nonce}`. */
  readonly path: string;
  /** Unique, for generators of clients. */
  readonly id: string;
  readonly summary: string;
  readonly description?: string;
  readonly params?: ObjectSchema;
  readonly query?: ObjectSchema;
  readonly form?: GenericSchema;
  readonly json?: GenericSchema;
  /** By status. */
  readonly responses: Readonly<Record<number, ResponseDescription>>;
}

/**
 * The operation object of OpenAPI 3.1, made from the schemas that requests are checked with.
 * @param security names of security schemes, one of which a request needs; an empty object where it may have none
 */
export function describeOperation(
  operation: OperationDescription,
  tag: string,
  security?: readonly JsonObject[],
): JsonObject {
  const { id, summary, description, params, query, form, json, responses: answers } = operation;
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
    responses: Object.fromEntries(Object.entries(answers).map(([status, answer]) => [status, responseObject(answer)])),
  };
}

function parametersOf(place: 'path' | 'query', members: OperationDescription['query']): JsonObject[] {
  if (members === undefined) return [];
  const { properties = {}, required = [] } = toJsonSchema(members, JSON_SCHEMA_OPTIONS);
  return Object.entries(properties).map(([name, schema]) => {
    if (typeof schema === 'boolean') return { name, in: place };
    const { description, ...rest } = schema;
    return { name, in: place, required: required.includes(name), ...(description && { description }), schema: rest };
  });
}

function responseObject({ description, body, headers = {} }: ResponseDescription): JsonObject {
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
const JSON_SCHEMA_OPTIONS = { target: 'draft-2020-12', typeMode: 'input', errorMode: 'ignore' } as const;

function jsonSchema(schema: GenericSchema): JsonObject {
  const { $schema: _, ...rest } = toJsonSchema(schema, JSON_SCHEMA_OPTIONS);
  return rest;
}
