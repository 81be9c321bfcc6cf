import * as v from 'valibot';

/** A valid value, or a message that names the member, the value found and the values allowed. */
export type ParseResult<T> = { readonly value: T } | { readonly problem: string };

/** Parses a JSON text and checks it. */
export function parseJson<T>(text: string, schema: v.GenericSchema<unknown, T>): ParseResult<T> {
  const json = v.safeParse(v.pipe(v.string(), v.parseJson()), text);
  return json.success ? validate(json.output, schema) : { problem: 'body: must be valid JSON' };
}

/** Checks a value. A custom message in the schema completes "must be …". */
export function validate<T>(value: unknown, schema: v.GenericSchema<unknown, T>): ParseResult<T> {
  if (Array.isArray(value)) return { problem: 'body: must be an object (found an array)' };
  const parsed = v.safeParse(schema, value);
  return parsed.success ? { value: parsed.output } : { problem: describeIssue(parsed.issues[0]) };
}

function describeIssue(issue: v.BaseIssue<unknown>): string {
  const member = v.getDotPath(issue)?.slice(0, 100) ?? 'body';
  if (issue.expected === 'never') return `${member}: unknown member; remove it`;
  if (issue.received === 'undefined' && issue.type === 'strict_object') {
    return `${member}: is missing`;
  }
  const found = issue.received === 'undefined' ? 'none' : issue.received.slice(0, 60);
  const allowed = issue.message.startsWith('Invalid ') ? (issue.expected ?? 'another value') : issue.message;
  return `${member}: must be ${allowed} (found ${found})`;
}

/** An instant, RFC 3339, UTC. */
export const instantSchema = () => v.pipe(v.string(), v.isoTimestamp());

/** A whole number in a range. */
export function integerInRange(min: number, max: number) {
  const schema = v.pipe(v.number(), v.integer(), v.minValue(min), v.maxValue(max));
  return v.message(schema, `a whole number from ${min} to ${max}`);
}

/** A number in a range. @param unit such as " of seconds", or empty */
export function numberInRange(min: number, max: number, unit: string) {
  return v.message(v.pipe(v.number(), v.minValue(min), v.maxValue(max)), `a number${unit} from ${min} to ${max}`);
}

/** A time span in seconds. */
export function positiveSeconds(max: number) {
  return v.message(v.pipe(v.number(), v.gtValue(0), v.maxValue(max)), `a number of seconds above 0, up to ${max}`);
}

/** The API's spelling of a library name: `refreshGrace` becomes `refresh_grace`. */
export function snakeCase(name: string): string {
  return name.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
}

/** The library's spelling of an API name: `refresh_grace` becomes `refreshGrace`. */
export function camelCase(name: string): string {
  return name.replaceAll(/_([a-z])/g, (_, letter: string) => letter.toUpperCase());
}

/** A copy of an object with renamed members. */
export function renameKeys<Value>(
  members: Readonly<Record<string, Value>>,
  rename: (name: string) => string,
): Record<string, Value> {
  return Object.fromEntries(Object.entries(members).map(([name, value]) => [rename(name), value]));
}

/** A copy of a value with the names of all members in snake_case, at every level. */
export function snakeCaseKeys(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(snakeCaseKeys);
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([name, member]) => [snakeCase(name), snakeCaseKeys(member)]));
}
