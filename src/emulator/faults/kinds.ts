import * as v from 'valibot';
import { ENDPOINTS } from '../http/logged-request.ts';
import {
  choice,
  decimal,
  type FaultMember,
  type FaultMembers,
  flag,
  headers,
  integer,
  type MemberInputs,
  multilineText,
  nullable,
  optional,
  seconds,
  text,
} from './fault-members.ts';

/** How often a fault strikes. @param each what it strikes, for people */
function frequencyMembers(each: 'request' | 'connection') {
  return {
    /** So many strikes, then it is spent; null: until it is removed. Default: 1. */
    times: optional(
      nullable(integer(1, 1_000_000, { label: 'How often (empty: always)', value: '1', empty: 'null' })),
      1,
    ),
    /** Strikes by chance, drawn from the emulator's seed: from 0 to 1. Default: 1. */
    probability: optional(decimal(0, 1, '', { label: 'Chance, from 0 to 1', hint: '1' }), 1),
    /** Strikes only each so-manieth request that it is for. Default: 1. */
    every: optional(integer(1, 1_000_000, { label: `Only every Nth ${each}`, hint: '1' }), 1),
  };
}

/** The members that faults have in common, by what they strike. */
export const COMMON_FAULT_MEMBERS = {
  /** Of several faults for one request the one that was added first strikes. */
  requests: {
    /** `*`: any, paths of no endpoint included. */
    endpoint: choice(...ENDPOINTS, '*'),
    /** Only requests of this grant type; for the token endpoint alone. */
    grantType: filterMember(v.pipe(v.string(), v.minLength(1), v.maxLength(200))),
    /** Only requests that name this registered client, authenticated or not. */
    client: filterMember(v.string()),
    ...frequencyMembers('request'),
  },
  /** Before there is a TLS session; only where the emulator speaks TLS. */
  connections: { origin: choice('base', 'frontend'), ...frequencyMembers('connection') },
  /** From when the fault is added until it is removed or its time is over. */
  origin: { origin: choice('base', 'frontend') },
};

function filterMember(schema: v.GenericSchema<string>): FaultMember<string | undefined> {
  return { schema: v.optional(schema), field: null };
}

/** A kind of fault: the library's type, the API's body, its description, the console's form and the guide's table follow from it. */
export interface FaultKind<Strikes extends keyof typeof COMMON_FAULT_MEMBERS, Own extends FaultMembers> {
  readonly strikes: Strikes;
  /** What the console calls it. */
  readonly label: string;
  /** What the client sees, for the guide. */
  readonly effect: string;
  /** Its members beside the common ones. */
  readonly own: Own;
}

/** Whether what the request asks for is done first: codes are used, tokens rotated. Default: false. */
const commit = optional(flag('Do what is asked for first'), false);

/** All kinds of faults, by name. */
export const FAULT_KINDS = {
  status: defineKind('requests', 'answer a status', 'that answer', {
    /** From 200 to 599. */
    status: integer(200, 599, { label: 'Status', value: '503' }),
    /** Default: `content-type: application/json`. */
    headers: optional(headers({ label: 'Headers, one a line', hint: 'Retry-After: 30' }), {}),
    /** Default: empty. */
    body: optional(multilineText({ label: 'Body', hint: '{"error":"server_error"}' }), ''),
    commit,
  }),
  redirect: defineKind('requests', 'redirect', 'a redirect, as of a captive portal', {
    location: text(/^[\x21-\x7e]{1,2000}$/, 'is an address in visible ASCII', {
      label: 'Location',
      value: 'http://127.0.0.1/',
    }),
    /** Default: 302. */
    status: optional(choice(301, 302, 307, 308), 302),
    commit,
  }),
  /** 200 and `application/json`, and the text is a web page: what a captive portal does. */
  not_json: defineKind('requests', 'a web page for JSON', '200 with something else than JSON', { commit }),
  delay: defineKind('requests', 'answer late', 'the answer, late', {
    /** Of real time, whatever the emulator's clock says. */
    seconds: seconds({ label: 'Seconds', value: '10' }),
    commit,
  }),
  /** The connection stays open until the client or the emulator closes it. */
  hang: defineKind('requests', 'never answer', 'nothing, on an open connection', { commit }),
  reset_before: defineKind('requests', 'reset the connection, undone', 'a reset, and nothing was done', {}),
  commit_then_drop: defineKind('requests', 'do it, then lose the answer', 'a reset, and everything was done', {}),
  truncate: defineKind('requests', 'cut the answer short', 'that much of the answer, then a cut', {
    /** Of the body; `Content-Length` is that of the whole. */
    bytes: integer(0, 1_000_000, { label: 'Bytes of it', value: '20' }),
  }),
  slow_body: defineKind('requests', 'answer slowly', 'the answer, in drops', {
    bytesPerSecond: integer(1, 1_000_000, { label: 'Bytes a second', value: '10' }),
  }),
  content_type: defineKind('requests', 'another content type', 'another media type', {
    contentType: text(/^[\x20-\x7e]{1,200}$/, 'is a media type', { label: 'Content type', value: 'text/plain' }),
  }),
  oversize: defineKind('requests', 'a huge answer', 'an answer of that size', {
    /** The right answer is followed by white space. */
    bytes: integer(1, 10_000_000_000, { label: 'Bytes', value: '10000000' }),
  }),
  wrong_date: defineKind('requests', 'a wrong Date header', 'a `Date` header that is off by so many seconds', {
    /** Seconds ahead, or behind where negative. */
    offset: decimal(-1e10, 1e10, ' of seconds', { label: 'Seconds ahead', value: '86400' }),
  }),
  tls_failure: defineKind('connections', 'fail the TLS handshake', '`garbage` or `close` in place of a TLS handshake', {
    /** What comes in place of the handshake: bytes that are no TLS, or the end of the connection. Default: `garbage`. */
    answer: optional(choice('garbage', 'close'), 'garbage'),
  }),
  /** The port refuses connections, and those that are open are cut. */
  origin_down: defineKind(
    'origin',
    'take an origin down',
    'connection refused; of the base origin, which takes this API with it, only for a time',
    {
      /** Of real time. Default: null, until it is removed. */
      seconds: optional(nullable(seconds({ label: 'Seconds', value: '10' })), null),
    },
  ),
};

function defineKind<Strikes extends keyof typeof COMMON_FAULT_MEMBERS, Own extends FaultMembers>(
  strikes: Strikes,
  label: string,
  effect: string,
  own: Own,
): FaultKind<Strikes, Own> {
  return { strikes, label, effect, own };
}

type FaultKinds = typeof FAULT_KINDS;

/** A fault to be met by clients of the emulator. */
export type FaultOptions = {
  [Name in keyof FaultKinds]: { readonly kind: Name } & MemberInputs<
    (typeof COMMON_FAULT_MEMBERS)[FaultKinds[Name]['strikes']]
  > &
    MemberInputs<FaultKinds[Name]['own']>;
}[keyof FaultKinds];

/** A fault that strikes requests. */
export type RequestFault = Extract<FaultOptions, { readonly endpoint: unknown }>;

/** What comes in place of the right answer. */
export type ReplacementFault = Extract<FaultOptions, { readonly kind: 'status' | 'redirect' | 'not_json' }>;

/** A fault that strikes connections before there is a TLS session. */
export type TlsFault = Extract<FaultOptions, { readonly kind: 'tls_failure' }>;

/** A fault with its id and what became of it. */
export type FaultView = FaultOptions & {
  readonly id: string;
  /** How often it struck. */
  readonly hits: number;
  /** How often it strikes yet; null: until it is removed. Of an origin that is down: 1, and 0 once it is up again. */
  readonly left: number | null;
};
