import type { FastifyRequest } from 'fastify';
import * as v from 'valibot';
import { bodyText, mediaType } from './request-form.ts';

/** A body that was checked, or a message that names the member, what was found and what is allowed. */
export type ParseResult<T> = { readonly value: T } | { readonly problem: string };

/** A request's body: it must be application/json, which no foreign web page can send unasked, and fit the schema. */
export function readJson<T>(request: FastifyRequest, schema: v.GenericSchema<unknown, T>): ParseResult<T> {
  if (mediaType(request) !== 'application/json') return { problem: 'body: allowed is application/json' };
  return parseJson(bodyText(request), schema);
}

/** A JSON text that must fit the schema. */
export function parseJson<T>(text: string, schema: v.GenericSchema<unknown, T>): ParseResult<T> {
  const json = v.safeParse(v.pipe(v.string(), v.parseJson()), text);
  return json.success ? validate(json.output, schema) : { problem: 'body: found no JSON; allowed is a JSON object' };
}

/** A value that must fit the schema. A message given in the schema is taken for what is allowed ("is …", "are …"). */
export function validate<T>(value: unknown, schema: v.GenericSchema<unknown, T>): ParseResult<T> {
  if (Array.isArray(value)) return { problem: 'body: found an array; allowed is an object' };
  const parsed = v.safeParse(schema, value);
  return parsed.success ? { value: parsed.output } : { problem: describeIssue(parsed.issues[0]) };
}

function describeIssue(issue: v.BaseIssue<unknown>): string {
  const member = v.getDotPath(issue)?.slice(0, 100) ?? 'body';
  if (issue.expected === 'never') return `${member}: found a member that is unknown here; allowed is to leave it out`;
  if (issue.received === 'undefined' && issue.type === 'strict_object') {
    return `${member}: found none; allowed is to give it`;
  }
  const found = issue.received === 'undefined' ? 'none' : issue.received.slice(0, 60);
  const allowed = issue.message.startsWith('Invalid ') ? `is ${issue.expected ?? 'another value'}` : issue.message;
  return `${member}: found ${found}; allowed ${allowed}`;
}

/** An instant, RFC 3339, UTC. */
export const instantSchema = () => v.pipe(v.string(), v.isoTimestamp());

/** A whole number in a range. */
export function integerInRange(min: number, max: number) {
  const schema = v.pipe(v.number(), v.integer(), v.minValue(min), v.maxValue(max));
  return v.message(schema, `is a whole number from ${min} to ${max}`);
}

/** A number in a range. @param unit " of seconds", if it has one */
export function numberInRange(min: number, max: number, unit: string) {
  return v.message(v.pipe(v.number(), v.minValue(min), v.maxValue(max)), `is a number${unit} from ${min} to ${max}`);
}

/** A time span. */
export function positiveSeconds(max: number) {
  return v.message(v.pipe(v.number(), v.gtValue(0), v.maxValue(max)), `is a number of seconds above 0, up to ${max}`);
}

/** A name of the library as the API has it: `refreshGrace` is `refresh_grace`. */
export function snakeCase(name: string): string {
  return name.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
}

/** The other way round: `refresh_grace` is `refreshGrace`. */
export function camelCase(name: string): string {
  return name.replaceAll(/_([a-z])/g, (_, letter: string) => letter.toUpperCase());
}

/** An object whose members have other names. */
export function renameKeys<Value>(
  members: Readonly<Record<string, Value>>,
  rename: (name: string) => string,
): Record<string, Value> {
  return Object.fromEntries(Object.entries(members).map(([name, value]) => [rename(name), value]));
}

/** A value of the library as the API says it: all members under snake_case names. */
export function snakeCaseKeys(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(snakeCaseKeys);
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([name, member]) => [snakeCase(name), snakeCaseKeys(member)]));
}
