import * as v from 'valibot';
import { GRANT_TYPES } from '../grant-types.ts';
import { ENDPOINTS } from '../http/logged-request.ts';
import { choiceOf, integerInRange, numberInRange, positiveSeconds } from '../json.ts';

/** Real time, at most a day. */
const SECONDS = positiveSeconds(86_400);

/** A text that matches a pattern. @param allowed completes "must be …" in the error message */
function text(pattern: RegExp, allowed: string) {
  return v.message(v.pipe(v.string(), v.regex(pattern)), allowed);
}

/** Header fields by name, except those that frame the message. */
const HEADERS = v.record(
  v.pipe(
    v.string(),
    v.regex(
      /^(?!(?:content-length|transfer-encoding|trailer)$)[\w!#$%&'*+.^`|~-]{1,100}$/i,
      'header names other than content-length, transfer-encoding and trailer',
    ),
  ),
  text(/^[\t\x20-\x7e\x80-\xff]{0,4000}$/, 'header values'),
);

/** Members that limit how often a fault is applied. */
const FREQUENCY = {
  /** How often it is applied before it is used up; null: no limit. Default: 1. */
  times: v.optional(v.nullable(integerInRange(1, 1_000_000)), 1),
  /** Probability from 0 to 1, drawn from the emulator's seed. Default: 1. */
  probability: v.optional(numberInRange(0, 1, ''), 1),
  /** Applied only to every Nth request or connection that matches. Default: 1. */
  every: v.optional(integerInRange(1, 1_000_000), 1),
};

/** The common members of faults, by what the fault applies to. */
export const COMMON_FAULT_MEMBERS = {
  /** If several faults match a request, the one added first applies. */
  requests: {
    /** `*`: any, including unknown paths. */
    endpoint: choiceOf([...ENDPOINTS, '*']),
    /** Only requests of this grant type; only for the token endpoint. */
    grantType: v.optional(choiceOf(GRANT_TYPES)),
    /** Only requests that name this registered client, authenticated or not. */
    client: v.optional(v.string()),
    ...FREQUENCY,
  },
  /** Connections before their TLS session; only for an emulator with TLS. */
  connections: { origin: choiceOf(['base', 'frontend']), ...FREQUENCY },
  /** A whole origin, until the fault is removed or its time is over. */
  origin: { origin: choiceOf(['base', 'frontend']) },
};

type Target = keyof typeof COMMON_FAULT_MEMBERS;

/**
 * A kind of fault. The library's type, the API's body and its description are derived from it, and the table of
 * docs/emulator.md must match it.
 */
interface FaultKind<Applied extends Target, Own extends v.ObjectEntries> {
  /** What it applies to. */
  readonly target: Applied;
  /** What the client sees, for docs/emulator.md and the console. */
  readonly effect: string;
  /** Its members in addition to the common ones. */
  readonly own: Own;
  /** Values of its members, by their names in the API, for a person who adds one on the console. */
  readonly example: Readonly<Record<string, unknown>>;
}

/** Whether the request is processed first: codes are used up, tokens are rotated. Default: false. */
const commit = v.optional(v.boolean(), false);

/** All kinds of faults, by name. */
export const FAULT_KINDS = {
  status: defineKind(
    'requests',
    'that response',
    {
      /** From 200 to 599. */
      status: integerInRange(200, 599),
      /** Default: `content-type: application/json`. */
      headers: v.optional(HEADERS, {}),
      /** Default: empty. */
      body: v.optional(v.string(), ''),
      commit,
    },
    { status: 503, headers: { 'retry-after': '30' }, body: '{"error":"server_error"}' },
  ),
  redirect: defineKind(
    'requests',
    'a redirect, like that of a captive portal',
    {
      location: text(/^[\x21-\x7e]{1,2000}$/, 'an address in visible ASCII'),
      /** Default: 302. */
      status: v.optional(choiceOf([301, 302, 307, 308]), 302),
      commit,
    },
    { location: 'http://127.0.0.1/' },
  ),
  /** 200 and `application/json` with a web page as its body, like a captive portal. */
  not_json: defineKind('requests', '200 with a body that is not JSON', { commit }),
  /** `seconds` are independent of the emulator's clock. */
  delay: defineKind('requests', 'the response, late', { seconds: SECONDS, commit }, { seconds: 10 }),
  /** The connection stays open until the client or the emulator closes it. */
  hang: defineKind('requests', 'nothing, on an open connection', { commit }),
  reset_before: defineKind('requests', 'a reset; the request was not processed', {}),
  commit_then_drop: defineKind('requests', 'a reset; the request was processed', {}),
  truncate: defineKind(
    'requests',
    'that many bytes of the body, then the end of the connection',
    {
      /** Bytes of the body; `Content-Length` is that of the whole body. */
      bytes: integerInRange(0, 1_000_000),
    },
    { bytes: 20 },
  ),
  slow_body: defineKind(
    'requests',
    'the response, sent slowly',
    { bytesPerSecond: integerInRange(1, 1_000_000) },
    { bytes_per_second: 10 },
  ),
  content_type: defineKind(
    'requests',
    'a different media type',
    { contentType: text(/^[\x20-\x7e]{1,200}$/, 'a media type') },
    { content_type: 'text/plain' },
  ),
  /** Only JSON objects change. The members arrive as they are written, so that a number may have any length. */
  change_members: defineKind(
    'requests',
    'the response with these members',
    {
      /** The text of a JSON object, whose members replace those of the response. */
      members: v.message(v.pipe(v.string(), v.check(isFilledObject)), 'the text of a JSON object with members'),
    },
    { members: '{"expires_in": 0}' },
  ),
  oversize: defineKind(
    'requests',
    'a response of that size',
    {
      /** White space follows the original response. */
      bytes: integerInRange(1, 10_000_000_000),
    },
    { bytes: 10_000_000 },
  ),
  wrong_date: defineKind(
    'requests',
    'a `Date` header that is off by that many seconds',
    {
      /** Seconds ahead; behind if negative. */
      offset: numberInRange(-1e10, 1e10, ' of seconds'),
    },
    { offset: 86_400 },
  ),
  tls_failure: defineKind('connections', '`garbage` or `close` instead of a TLS handshake', {
    /** What replaces the handshake: bytes that are not TLS, or the end of the connection. Default: `garbage`. */
    answer: v.optional(choiceOf(['garbage', 'close']), 'garbage'),
  }),
  /** The port refuses connections, and open ones are cut. */
  origin_down: defineKind(
    'origin',
    'connection refused; for the base origin only for a limited time, because this API is unreachable too',
    {
      /** Default: null, until the fault is removed. */
      seconds: v.optional(v.nullable(SECONDS), null),
    },
    { seconds: 10 },
  ),
};

function isFilledObject(text: string): boolean {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === 'object' && value !== null && !Array.isArray(value) && Object.keys(value).length > 0;
  } catch {
    return false;
  }
}

function defineKind<Applied extends Target, Own extends v.ObjectEntries>(
  target: Applied,
  effect: string,
  own: Own,
  example: FaultKind<Applied, Own>['example'] = {},
): FaultKind<Applied, Own> {
  return { target, effect, own, example };
}

type FaultKinds = typeof FAULT_KINDS;
type Members<Entries extends v.ObjectEntries> = v.InferInput<v.StrictObjectSchema<Entries, undefined>>;

/** A fault to add to the emulator. */
export type FaultOptions = {
  [Name in keyof FaultKinds]: Readonly<
    { kind: Name } & Members<(typeof COMMON_FAULT_MEMBERS)[FaultKinds[Name]['target']]> &
      Members<FaultKinds[Name]['own']>
  >;
}[keyof FaultKinds];

/** A fault that applies to requests. */
export type RequestFault = Extract<FaultOptions, { readonly endpoint: unknown }>;

/** A fault that replaces the response. */
export type ReplacementFault = Extract<FaultOptions, { readonly kind: 'status' | 'redirect' | 'not_json' }>;

/** A fault that applies to connections before their TLS session. */
export type TlsFault = Extract<FaultOptions, { readonly kind: 'tls_failure' }>;

/** A fault with its ID and its counts. */
export type FaultView = FaultOptions & {
  readonly id: string;
  /** How often it was applied. */
  readonly hits: number;
  /** Remaining hits; null: no limit. For origin_down: 1 while the origin is down, and 0 when it is up again. */
  readonly left: number | null;
};
