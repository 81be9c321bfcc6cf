import * as v from 'valibot';
import { camelCase, check, parseJson, renamed, snakeCase } from '../http/json-body.ts';
import { ENDPOINTS } from '../http/logged-request.ts';
import { FaultError, type FaultOptions } from './options.ts';

const SECONDS = 'is a number of seconds above 0, up to 86400';
const seconds = v.pipe(v.number(SECONDS), v.gtValue(0, SECONDS), v.maxValue(86_400, SECONDS));
const origin = v.picklist(['base', 'frontend']);

/** Whole numbers in a range. */
function whole(lowest: number, highest: number) {
  const allowed = `is a whole number from ${lowest} to ${highest}`;
  return v.pipe(v.number(allowed), v.integer(allowed), v.minValue(lowest, allowed), v.maxValue(highest, allowed));
}

const CHANCE = 'is a number from 0 to 1';
const often = {
  times: v.optional(v.nullable(whole(1, 1_000_000)), 1),
  probability: v.optional(v.pipe(v.number(CHANCE), v.minValue(0, CHANCE), v.maxValue(1, CHANCE)), 1),
  every: v.optional(whole(1, 1_000_000), 1),
};
const requests = {
  endpoint: v.picklist([...ENDPOINTS, '*']),
  grant_type: v.optional(v.pipe(v.string(), v.minLength(1), v.maxLength(200))),
  client: v.optional(v.string()),
  ...often,
};
const commit = { commit: v.optional(v.boolean(), false) };

const NAME = 'are header names, without content-length, transfer-encoding and trailer';
const VALUE = 'are header values';
const headers = v.record(
  v.pipe(v.string(), v.regex(/^(?!(?:content-length|transfer-encoding|trailer)$)[\w!#$%&'*+.^`|~-]{1,100}$/i, NAME)),
  v.pipe(v.string(VALUE), v.regex(/^[\t\x20-\x7e\x80-\xff]{0,4000}$/, VALUE)),
);

const ADDRESS = 'is an address in visible ASCII';
const MEDIA_TYPE = 'is a media type';
const OFFSET = 'is a number of seconds from -10000000000 to 10000000000';

/** The members of every kind of fault, and `more` ones. */
function kinds<T extends v.ObjectEntries>(more: T) {
  const kind = <K extends string, E extends v.ObjectEntries>(name: K, entries: E) =>
    v.strictObject({ kind: v.literal(name), ...entries, ...more });
  return v.variant('kind', [
    kind('status', {
      ...requests,
      ...commit,
      status: whole(200, 599),
      headers: v.optional(headers, {}),
      body: v.optional(v.string(), ''),
    }),
    kind('redirect', {
      ...requests,
      ...commit,
      location: v.pipe(v.string(ADDRESS), v.regex(/^[\x21-\x7e]{1,2000}$/, ADDRESS)),
      status: v.optional(v.picklist([301, 302, 307, 308]), 302),
    }),
    kind('not_json', { ...requests, ...commit }),
    kind('delay', { ...requests, ...commit, seconds }),
    kind('hang', { ...requests, ...commit }),
    kind('reset_before', requests),
    kind('commit_then_drop', requests),
    kind('truncate', { ...requests, bytes: whole(0, 1_000_000) }),
    kind('slow_body', { ...requests, bytes_per_second: whole(1, 1_000_000) }),
    kind('content_type', {
      ...requests,
      content_type: v.pipe(v.string(MEDIA_TYPE), v.regex(/^[\x20-\x7e]{1,200}$/, MEDIA_TYPE)),
    }),
    kind('oversize', { ...requests, bytes: whole(1, 10_000_000_000) }),
    kind('wrong_date', {
      ...requests,
      offset: v.pipe(v.number(OFFSET), v.minValue(-1e10, OFFSET), v.maxValue(1e10, OFFSET)),
    }),
    kind('tls_failure', { origin, ...often, answer: v.optional(v.picklist(['garbage', 'close']), 'garbage') }),
    kind('origin_down', { origin, seconds: v.optional(v.nullable(seconds), null) }),
  ]);
}

/** A fault as it comes over the API. */
export const FaultBody = kinds({});

/** A fault as the API shows it. */
export const FaultAnswer = kinds({ id: v.string(), hits: v.number(), left: v.nullable(v.number()) });

/** A fault that was read, all defaults filled in. */
export function fromBody(body: v.InferOutput<typeof FaultBody>): FaultOptions {
  return renamed(body, camelCase) as unknown as FaultOptions;
}

/** The members' names as they go over the API. */
export function toWire(fault: FaultOptions): object {
  return renamed({ ...fault }, snakeCase);
}

/**
 * Checks a fault of the library's and fills in the defaults.
 * @throws FaultError
 */
export function checked(fault: FaultOptions): FaultOptions {
  const body = check(toWire(fault), FaultBody);
  if ('problem' in body) throw new FaultError(body.problem);
  return fromBody(body.value);
}

/**
 * Reads a fault in the form of the API, from a command line.
 * @throws FaultError
 */
export function parseFault(text: string): FaultOptions {
  const body = parseJson(text, FaultBody);
  if ('problem' in body) throw new FaultError(body.problem);
  return fromBody(body.value);
}
