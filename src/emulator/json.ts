import * as v from 'valibot';
import { didYouMean, nearestName } from '../system/did-you-mean.ts';

/** A valid value, or a message that names the member, the value found and the values allowed. */
export type ParseResult<T> = { readonly value: T } | { readonly problem: string };

/** Parses a JSON text and checks it. */
export function parseJson<T>(text: string, schema: v.GenericSchema<unknown, T>): ParseResult<T> {
  const json = v.safeParse(v.pipe(v.string(), v.parseJson()), text);
  return json.success ? validate(json.output, schema) : { problem: 'body: must be valid JSON' };
}

/**
 * Checks an object. A custom message in the schema completes "must be …", or begins with "must be" or "is" itself.
 * @param name what the object itself is called in a message
 */
export function validate<T>(value: unknown, schema: v.GenericSchema<unknown, T>, name = 'body'): ParseResult<T> {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    const found = Array.isArray(value) ? 'an array' : value === undefined ? 'none' : String(value);
    return { problem: `${name}: must be an object (found ${found.slice(0, 60)})` };
  }
  const parsed = v.safeParse(schema, value);
  if (parsed.success) return { value: parsed.output };
  // A misspelled member first: the one that was meant may be missing.
  const issue = parsed.issues.find(({ expected }) => expected === 'never') ?? parsed.issues[0];
  const member = v.getDotPath(issue)?.slice(0, 100) ?? name;
  const message = issue.message.startsWith('Invalid ') ? allowedType(issue.expected) : issue.message;
  return { problem: `${member}: ${/^(must be|is) /.test(message) ? message : mustBe(message, issue)}` };
}

function mustBe(allowed: string, { received }: v.BaseIssue<unknown>, suggestion = ''): string {
  return `must be ${allowed} (found ${received === 'undefined' ? 'none' : received.slice(0, 60)}${suggestion})`;
}

/** The types that valibot expects, in words. */
const TYPES: Readonly<Record<string, string>> = {
  string: 'a string',
  boolean: 'true or false',
  Array: 'a list',
  Object: 'an object',
};

function allowedType(expected: string | null): string {
  return TYPES[expected ?? ''] ?? 'another value';
}

/** An object with these members and no others. The message about another one suggests the nearest, or else lists all. */
export function exactObject<const Entries extends v.ObjectEntries>(entries: Entries) {
  const names = Object.keys(entries);
  return v.strictObject(entries, ({ expected, input }) => {
    if (expected !== 'never') return 'is missing';
    return `is unknown${didYouMean(String(input), names) || `; allowed: ${names.join(', ') || 'none'}`}`;
  });
}

/** One of these values, see {@link choiceMessage}. */
export function choiceOf<const Value extends string | number>(values: readonly Value[]) {
  return v.picklist(values, choiceMessage(values));
}

/** The message about a value that is none of these: it lists them and suggests the nearest. */
export function choiceMessage(values: readonly (string | number)[]): (issue: v.BaseIssue<unknown>) => string {
  const names = values.map(String);
  return (issue) => {
    const nearest = typeof issue.input === 'string' ? nearestName(issue.input, names) : null;
    // Created here: ICU takes memory that a start does not need.
    const listed = new Intl.ListFormat('en-GB', { type: 'disjunction' }).format(names);
    return mustBe(listed, issue, nearest === null ? '' : `; did you mean ${nearest}?`);
  };
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
