import * as v from 'valibot';
import { GRANT_TYPES } from '../grant-types.ts';
import { ENDPOINTS } from '../http/logged-request.ts';
import { choiceOf, integerInRange, numberInRange, positiveSeconds } from '../json.ts';

/** A field of the console's form for a member of a fault. */
export interface FaultField {
  readonly label: string;
  /** `lines`: text of several lines; `headers`: one header per line. */
  readonly type: 'number' | 'text' | 'checkbox' | 'lines' | 'headers';
  /** Initial value. A field that has one is required, unless `empty` defines the meaning of an empty field. */
  readonly value?: string;
  /** An empty field means null. Default: the member is left out. */
  readonly empty?: 'null';
  readonly min?: number;
  readonly max?: number;
  /** Placeholder of the empty field. */
  readonly hint?: string;
}

/** A member of a fault. It is optional if `Input` includes undefined. */
interface FaultMember<Input> {
  /** Its values. A custom message completes "must be …". */
  readonly schema: v.GenericSchema<Input, unknown>;
  /** Its field on the console; null: none, or a special control. */
  readonly field: FaultField | null;
}

/** Members by their library names. */
type FaultMembers = Readonly<Record<string, FaultMember<unknown>>>;

/** The type of an object with these members. */
type MemberInputs<M extends FaultMembers> = Inputs<M, Exclude<keyof M, Optional<M>>> & Partial<Inputs<M, Optional<M>>>;

type Inputs<M extends FaultMembers, Names extends keyof M> = { readonly [Name in Names]: InputOf<M[Name]> };
type Optional<M extends FaultMembers> = {
  [Name in keyof M]: undefined extends InputOf<M[Name]> ? Name : never;
}[keyof M];
type InputOf<M> = M extends FaultMember<infer Input> ? Input : never;

type FieldOptions = Pick<FaultField, 'label' | 'value' | 'empty' | 'hint'>;

/** A whole number in a range. */
function integer(min: number, max: number, options: FieldOptions): FaultMember<number> {
  return { schema: integerInRange(min, max), field: { ...options, type: 'number', min, max } };
}

/** A number in a range. @param unit such as " of seconds", or empty */
function decimal(min: number, max: number, unit: string, options: FieldOptions): FaultMember<number> {
  return { schema: numberInRange(min, max, unit), field: { ...options, type: 'number', min, max } };
}

/** A number of seconds above 0, at most a day. */
function seconds(options: FieldOptions): FaultMember<number> {
  const max = 86_400;
  return { schema: positiveSeconds(max), field: { ...options, type: 'number', min: 0, max } };
}

/** A text that matches a pattern. @param allowed completes "must be …" in the error message */
function text(pattern: RegExp, allowed: string, options: FieldOptions): FaultMember<string> {
  return { schema: v.message(v.pipe(v.string(), v.regex(pattern)), allowed), field: { ...options, type: 'text' } };
}

/** Any text. */
function multilineText(options: FieldOptions): FaultMember<string> {
  return { schema: v.string(), field: { ...options, type: 'lines' } };
}

/** Header fields by name, except those that frame the message. */
function headers(options: FieldOptions): FaultMember<Readonly<Record<string, string>>> {
  const name = /^(?!(?:content-length|transfer-encoding|trailer)$)[\w!#$%&'*+.^`|~-]{1,100}$/i;
  const value = /^[\t\x20-\x7e\x80-\xff]{0,4000}$/;
  const schema = v.record(
    v.pipe(v.string(), v.regex(name, 'header names other than content-length, transfer-encoding and trailer')),
    v.message(v.pipe(v.string(), v.regex(value)), 'header values'),
  );
  return { schema, field: { ...options, type: 'headers' } };
}

/** True or false. */
function flag(label: string): FaultMember<boolean> {
  return { schema: v.boolean(), field: { label, type: 'checkbox' } };
}

/** One of these values. */
function choice<const Value extends string | number>(...values: readonly Value[]): FaultMember<Value> {
  return { schema: choiceOf(values), field: null };
}

/** A member that may be null. */
function nullable<Input>(member: FaultMember<Input>): FaultMember<Input | null> {
  return { ...member, schema: v.nullable(member.schema) };
}

/** An optional member with a default. */
function optional<Input>(member: FaultMember<Input>, fallback: Input): FaultMember<Input | undefined> {
  return { ...member, schema: v.optional(member.schema, fallback) };
}

/** Members that limit how often a fault is applied. @param noun what it is applied to, for labels */
function frequencyMembers(noun: 'request' | 'connection') {
  return {
    /** How often it is applied before it is used up; null: no limit. Default: 1. */
    times: optional(
      nullable(integer(1, 1_000_000, { label: 'How often (empty: always)', value: '1', empty: 'null' })),
      1,
    ),
    /** Probability from 0 to 1, drawn from the emulator's seed. Default: 1. */
    probability: optional(decimal(0, 1, '', { label: 'Probability, from 0 to 1', hint: '1' }), 1),
    /** Applied only to every Nth request or connection that matches. Default: 1. */
    every: optional(integer(1, 1_000_000, { label: `Only every Nth ${noun}`, hint: '1' }), 1),
  };
}

/** The common members of faults, by what the fault applies to. */
export const COMMON_FAULT_MEMBERS = {
  /** If several faults match a request, the one added first applies. */
  requests: {
    /** `*`: any, including unknown paths. */
    endpoint: choice(...ENDPOINTS, '*'),
    /** Only requests of this grant type; only for the token endpoint. */
    grantType: filterMember(choiceOf(GRANT_TYPES)),
    /** Only requests that name this registered client, authenticated or not. */
    client: filterMember(v.string()),
    ...frequencyMembers('request'),
  },
  /** Connections before their TLS session; only for an emulator with TLS. */
  connections: { origin: choice('base', 'frontend'), ...frequencyMembers('connection') },
  /** A whole origin, until the fault is removed or its time is over. */
  origin: { origin: choice('base', 'frontend') },
};

function filterMember<Value extends string>(schema: v.GenericSchema<Value>): FaultMember<Value | undefined> {
  return { schema: v.optional(schema), field: null };
}

/**
 * A kind of fault. The library's type, the API's body and description and the console's form are derived from it, and
 * the table of docs/emulator.md must match it.
 */
interface FaultKind<Target extends keyof typeof COMMON_FAULT_MEMBERS, Own extends FaultMembers> {
  /** What it applies to. */
  readonly target: Target;
  /** Its name on the console. */
  readonly label: string;
  /** What the client sees, for docs/emulator.md. */
  readonly effect: string;
  /** Its members in addition to the common ones. */
  readonly own: Own;
}

/** Whether the request is processed first: codes are used up, tokens are rotated. Default: false. */
const commit = optional(flag('Process the request first'), false);

/** All kinds of faults, by name. */
export const FAULT_KINDS = {
  status: defineKind('requests', 'respond with a status', 'that response', {
    /** From 200 to 599. */
    status: integer(200, 599, { label: 'Status', value: '503' }),
    /** Default: `content-type: application/json`. */
    headers: optional(headers({ label: 'Headers, one per line', hint: 'Retry-After: 30' }), {}),
    /** Default: empty. */
    body: optional(multilineText({ label: 'Body', hint: '{"error":"server_error"}' }), ''),
    commit,
  }),
  redirect: defineKind('requests', 'redirect', 'a redirect, like that of a captive portal', {
    location: text(/^[\x21-\x7e]{1,2000}$/, 'an address in visible ASCII', {
      label: 'Location',
      value: 'http://127.0.0.1/',
    }),
    /** Default: 302. */
    status: optional(choice(301, 302, 307, 308), 302),
    commit,
  }),
  /** 200 and `application/json` with a web page as its body, like a captive portal. */
  not_json: defineKind('requests', 'a web page instead of JSON', '200 with a body that is not JSON', { commit }),
  delay: defineKind('requests', 'respond late', 'the response, late', {
    /** In real time, independent of the emulator's clock. */
    seconds: seconds({ label: 'Seconds', value: '10' }),
    commit,
  }),
  /** The connection stays open until the client or the emulator closes it. */
  hang: defineKind('requests', 'never respond', 'nothing, on an open connection', { commit }),
  reset_before: defineKind('requests', 'reset without processing', 'a reset; the request was not processed', {}),
  commit_then_drop: defineKind('requests', 'process, then lose the response', 'a reset; the request was processed', {}),
  truncate: defineKind(
    'requests',
    'truncate the response',
    'that many bytes of the body, then the end of the connection',
    {
      /** Bytes of the body; `Content-Length` is that of the whole body. */
      bytes: integer(0, 1_000_000, { label: 'Bytes of the body', value: '20' }),
    },
  ),
  slow_body: defineKind('requests', 'respond slowly', 'the response, sent slowly', {
    bytesPerSecond: integer(1, 1_000_000, { label: 'Bytes per second', value: '10' }),
  }),
  content_type: defineKind('requests', 'another content type', 'a different media type', {
    contentType: text(/^[\x20-\x7e]{1,200}$/, 'a media type', { label: 'Content type', value: 'text/plain' }),
  }),
  /** Only JSON objects change. The members are added as they are written, so that a number may have any length. */
  change_members: defineKind('requests', 'change members of the JSON', 'the response with these members', {
    /** The text of a JSON object, whose members replace those of the response. */
    members: {
      schema: v.message(v.pipe(v.string(), v.check(isFilledObject)), 'the text of a JSON object with members'),
      field: { label: 'Members, as JSON', type: 'text', value: '{"expires_in": 0}' },
    },
  }),
  oversize: defineKind('requests', 'a huge response', 'a response of that size', {
    /** White space follows the original response. */
    bytes: integer(1, 10_000_000_000, { label: 'Bytes', value: '10000000' }),
  }),
  wrong_date: defineKind('requests', 'a wrong Date header', 'a `Date` header that is off by that many seconds', {
    /** Seconds ahead; behind if negative. */
    offset: decimal(-1e10, 1e10, ' of seconds', { label: 'Seconds ahead', value: '86400' }),
  }),
  tls_failure: defineKind('connections', 'fail the TLS handshake', '`garbage` or `close` instead of a TLS handshake', {
    /** What replaces the handshake: bytes that are not TLS, or the end of the connection. Default: `garbage`. */
    answer: optional(choice('garbage', 'close'), 'garbage'),
  }),
  /** The port refuses connections, and open ones are cut. */
  origin_down: defineKind(
    'origin',
    'take an origin down',
    'connection refused; for the base origin only for a limited time, because this API is unreachable too',
    {
      /** In real time. Default: null, until the fault is removed. */
      seconds: optional(nullable(seconds({ label: 'Seconds', value: '10' })), null),
    },
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

function defineKind<Target extends keyof typeof COMMON_FAULT_MEMBERS, Own extends FaultMembers>(
  target: Target,
  label: string,
  effect: string,
  own: Own,
): FaultKind<Target, Own> {
  return { target, label, effect, own };
}

type FaultKinds = typeof FAULT_KINDS;

/** A fault to add to the emulator. */
export type FaultOptions = {
  [Name in keyof FaultKinds]: { readonly kind: Name } & MemberInputs<
    (typeof COMMON_FAULT_MEMBERS)[FaultKinds[Name]['target']]
  > &
    MemberInputs<FaultKinds[Name]['own']>;
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
