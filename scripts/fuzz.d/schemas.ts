import fc from 'fast-check';

/** The part of JSON Schema that the OpenAPI documents use. */
export interface JsonSchema {
  readonly type?: string;
  readonly const?: unknown;
  readonly enum?: readonly unknown[];
  readonly oneOf?: readonly JsonSchema[];
  readonly anyOf?: readonly JsonSchema[];
  readonly properties?: Readonly<Record<string, JsonSchema>>;
  readonly required?: readonly string[];
  readonly minimum?: number;
  readonly maximum?: number;
}

/** Texts that some members accept. */
const TEXTS = ['x', '^http:', 'http://127.0.0.1:1/', 'code:x'];

/** A value that a schema allows. The format of texts is ignored. */
export function matchingValue(schema: JsonSchema): fc.Arbitrary<unknown> {
  const { type, minimum = 0.001, maximum = 1e9, properties = {}, required = [] } = schema;
  if (schema.const !== undefined) return fc.constant(schema.const);
  if (schema.enum !== undefined) return fc.constantFrom(...schema.enum);
  const some = schema.oneOf ?? schema.anyOf;
  if (some !== undefined) return fc.oneof(...some.map(matchingValue));
  if (type === 'boolean') return fc.boolean();
  if (type === 'null') return fc.constant(null);
  if (type === 'integer') return fc.integer({ min: Math.ceil(minimum), max: Math.min(maximum, 2 ** 31 - 1) });
  if (type === 'number') return fc.double({ min: minimum, max: maximum, noNaN: true });
  if (type !== 'object') return fc.constantFrom(...TEXTS);
  const members = Object.entries(properties).map(([name, one]) => [name, matchingValue(one)] as const);
  return fc.record(Object.fromEntries(members), { requiredKeys: [...required] });
}
