// Makes fuzz requests from plans: unchanged, abandoned, mutated above HTTP, or with any byte mutated.
import { METHODS } from 'node:http';
import fc from 'fast-check';
import { type Mutation, mutation, sometimes, specialText, textTemplate, visibleText } from './texts.ts';

/** The destination of a request: an origin of the emulator, or a port of the hub. */
export type RequestOrigin = 'base' | 'frontend' | 'http' | 'https';

/** A request before its encoding as HTTP. */
export interface RequestPlan {
  readonly origin: RequestOrigin;
  readonly method: string;
  readonly path: string;
  readonly heads: readonly string[];
  /** Empty if there is none. */
  readonly body: string;
  /** Its client authentication is forged, so that a successful response is wrong. */
  readonly forged?: boolean;
}

/** A request as bytes on the wire. */
export interface FuzzRequest extends Pick<RequestPlan, 'origin' | 'method' | 'path' | 'forged'> {
  /** In Latin-1. */
  readonly bytes: string;
  /** Whether it is valid HTTP, so that a response must come and the connection stays usable. */
  readonly sound: boolean;
  /** Whether other requests may follow it on its connection before its response. */
  readonly pipelined: boolean;
  /** The bytes are written in this many pieces. */
  readonly pieces: number;
  /** Its connection is its own, and is reset immediately after the bytes. */
  readonly isReset: boolean;
  /**
   * The connection to a hub if this request opens it: the source address, whether it is without TLS, and the server
   * name (SNI).
   */
  readonly via?: { readonly address: string; readonly plain: boolean; readonly servername?: string };
}

export const FORM = 'Content-Type: application/x-www-form-urlencoded';
export const JSON_TYPE = 'Content-Type: application/json';

/** A plan from parts that are constant or arbitrary. */
export function requestPlan(parts: {
  readonly origin: RequestOrigin | fc.Arbitrary<RequestOrigin>;
  readonly method?: string;
  readonly path: string | fc.Arbitrary<string>;
  readonly heads?: readonly (string | fc.Arbitrary<string>)[];
  readonly body?: string | fc.Arbitrary<string>;
}): fc.Arbitrary<RequestPlan> {
  const { origin, method = 'GET', path, heads = [], body = '' } = parts;
  return fc.record({
    origin: arbitrary(origin),
    method: fc.constant(method),
    path: arbitrary(path),
    heads: fc.tuple(...heads.map(arbitrary)),
    body: arbitrary(body),
  });
}

function arbitrary<T extends string>(one: T | fc.Arbitrary<T>): fc.Arbitrary<T> {
  return typeof one === 'string' ? fc.constant(one) : one;
}

/** Fuzz requests. @param plans gives good plans, which get past the validation, and odd ones */
export function fuzzRequests(plans: (good: boolean) => fc.Arbitrary<RequestPlan>): fc.Arbitrary<FuzzRequest> {
  const [right, odd] = [plans(true), plans(false)];
  return fc.oneof(
    { arbitrary: right.map(good), weight: 35 },
    { arbitrary: sound(odd), weight: 59 },
    { arbitrary: broken(odd), weight: 4 },
    { arbitrary: abandoned(right), weight: 2 },
  );
}

const HOSTS = ['evil.example', '[::1]:80', '127.0.0.1:1', 'x'.repeat(300), '__proto__', '%00'];
const CONNECTION_HEADS = [
  'Expect: 100-continue',
  'Expect: nonsense',
  'Connection: close',
  'Connection: keep-alive, x',
  'Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABk',
  'Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Key: x',
];
const NO_HTTP = [
  'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n',
  '\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03',
  '\r\n\r\n',
  '\0\0\0',
];
const LENGTHS = [
  '',
  'Content-Length: -1',
  'Content-Length: 99999999',
  'Content-Length: 1\r\nContent-Length: 2',
  'Content-Length: 0x5',
  'Transfer-Encoding: chunked',
  'Transfer-Encoding: chunked\r\nContent-Length: 3',
];
const HEADS = [
  'Authorization: Basic \xff',
  'Authorization: Basic Og==',
  'Authorization: Bearer ....',
  'Authorization: Digest x',
  'Authorization: DPoP ....',
  'DPoP: e30.e30.x',
  'Content-Type: nonsense',
  'Content-Type: application/json; charset=x',
  'Content-Type: multipart/form-data; boundary=',
  'Accept: text/\xe9',
  'Origin: https://evil.example',
  'Sec-Fetch-Site: cross-site',
  'Cookie: a=b; __Host-x=\x7f',
  'If-None-Match: *',
  'Range: bytes=0-1',
  'X-Forwarded-Host: evil.example',
  'Content-Encoding: gzip',
  'Accept-Encoding: gzip;q=9',
];

const USED = { sound: true, pipelined: true, pieces: 1, isReset: false } as const;

/** A valid request, unless it refers to something that no longer exists. */
function good({ origin, method, heads, body, ...planned }: RequestPlan): FuzzRequest {
  const path = visible(planned.path);
  const lines = [...heads, ...(body === '' && method === 'GET' ? [] : [`Content-Length: ${body.length}`])];
  return { ...USED, origin, method, path, bytes: written(method, path, lines, body) };
}

/** A partial request, or one whose response is not awaited. */
function abandoned(plans: fc.Arbitrary<RequestPlan>): fc.Arbitrary<FuzzRequest> {
  return fc
    .record({
      whole: plans.map(good),
      share: sometimes(
        40,
        fc.constant(1),
        fc.nat(999).map((thousandths) => thousandths / 1000),
      ),
    })
    .map(({ whole, share }) => {
      const bytes = whole.bytes.slice(0, Math.floor(share * whole.bytes.length));
      return { ...whole, bytes, isReset: true, sound: false, pipelined: false };
    });
}

const nothing = fc.constant('');
const same: fc.Arbitrary<Mutation> = fc.constant((whole: string) => whole);
const most = (percent: number) => sometimes(percent, mutation, same);

/** The changes in a plan, above HTTP or below it. */
const changed = fc.record({
  otherMethod: sometimes(8, fc.constantFrom(...METHODS), fc.constant(null)),
  path: sometimes(40, fc.array(mutation, { minLength: 1, maxLength: 3 }), fc.constant<Mutation[]>([])),
  heads: fc.tuple(most(10), most(10), most(10)),
  more: sometimes(20, fc.oneof(textTemplate`Authorization: Bearer ${specialText}`, fc.constantFrom(...HEADS)), nothing),
  long: sometimes(2, textTemplate`X-Long: ${visibleText(3000)}`, nothing),
  body: sometimes(5, visibleText(200), nothing),
  pieces: sometimes(3, fc.integer({ min: 2, max: 5 }), fc.constant(1)),
});

function change(planned: RequestPlan, changes: typeof changed extends fc.Arbitrary<infer T> ? T : never): RequestPlan {
  const heads = planned.heads.map((head, index) => changes.heads[index]?.(head) ?? head);
  return {
    ...planned,
    method: changes.otherMethod ?? planned.method,
    path: changes.path.reduce((path, mutate) => mutate(path), planned.path),
    heads: [...heads, changes.more, changes.long],
    body: planned.body === '' ? changes.body : planned.body,
  };
}

/** The chunked coding (RFC 9112, 7.1), sometimes with extensions and trailers. */
const coding = fc
  .record({
    share: fc.nat(99),
    extension: sometimes(20, fc.constant(';a=b'), nothing),
    trailer: sometimes(20, fc.constant('X-Trailer: a\r\n'), nothing),
  })
  .map(({ share, extension, trailer }) => (body: string) => {
    const at = Math.floor((share * body.length) / 100);
    const pieces = [body.slice(0, at), body.slice(at)].filter((piece) => piece !== '');
    const coded = pieces.map((piece) => `${piece.length.toString(16)}${extension}\r\n${piece}\r\n`);
    return `${coded.join('')}0\r\n${trailer}\r\n`;
  });

/** A request that is mutated above HTTP: a response must come. */
function sound(plans: fc.Arbitrary<RequestPlan>): fc.Arbitrary<FuzzRequest> {
  return fc
    .record({
      plans,
      changed,
      target: sometimes(0.5, fc.constantFrom('*', 'http://evil.example/'), fc.constant('/')),
      connection: sometimes(2, fc.constantFrom(...CONNECTION_HEADS), nothing),
      old: sometimes(1, fc.constant(true), fc.constant(false)),
      host: sometimes(2, fc.constantFrom(...HOSTS), fc.constant('127.0.0.1')),
      coding: sometimes(5, coding, fc.constant(null)),
      unsaid: sometimes(70, fc.constant(true), fc.constant(false)),
    })
    .map(({ plans, changed, target, connection, old, host, coding, unsaid }) => {
      const { origin, method, body, forged = false, ...planned } = change(plans, changed);
      const clean = visible(planned.path).replace(/^\/+/, '').slice(0, 6000);
      const path = target === '*' ? target : `${target}${clean}`;
      const { pieces } = changed;
      // Node ends the connection after CONNECT. After a requested upgrade, nothing may be sent before the response.
      const pipelined = pieces === 1 && connection === '' && method !== 'CONNECT' && !old;
      const coded = body !== '' && coding !== null;
      const length = coded
        ? 'Transfer-Encoding: chunked'
        : body === '' && unsaid
          ? ''
          : `Content-Length: ${body.length}`;
      const heads = [...planned.heads.map(soundHead), connection, length];
      const bytes = written(method, path, heads, coded ? coding(body) : body, host, old ? '1.0' : '1.1');
      return { ...USED, origin, method, path, bytes, pieces, pipelined, sound: method !== 'CONNECT', forged };
    });
}

/** A request in which any byte may be mutated: a response may come or not. */
function broken(plans: fc.Arbitrary<RequestPlan>): fc.Arbitrary<FuzzRequest> {
  return fc
    .record({
      plans,
      changed,
      filled: sometimes(5, fc.integer({ min: 60_000, max: 80_000 }), fc.constant(0)),
      length: sometimes(30, fc.constantFrom(...LENGTHS), fc.constant(null)),
      unsaid: sometimes(70, fc.constant(true), fc.constant(false)),
      noHttp: sometimes(3, textTemplate`${fc.constantFrom(...NO_HTTP)}${visibleText(200)}`, fc.constant(null)),
      mutations: fc.array(mutation, { maxLength: 3 }),
    })
    .map(({ plans, changed, filled, length, unsaid, noHttp, mutations }) => {
      const { origin, method, path, heads, forged = false, ...planned } = change(plans, changed);
      const body = planned.body.padEnd(filled, 'x');
      const lengthHead = body === '' && unsaid ? '' : (length ?? `Content-Length: ${body.length}`);
      const whole = noHttp ?? written(method, path, [...heads, lengthHead], body);
      const bytes = mutations.reduce((bytes, mutate) => mutate(bytes), whole);
      return { ...USED, origin, method, path, bytes, sound: false, pipelined: false, pieces: changed.pieces, forged };
    });
}

/** A path or query with only the characters that HTTP permits. */
function visible(path: string): string {
  return path.replaceAll(/[^\x21-\x7e]/g, '%ff');
}

function written(
  method: string,
  path: string,
  heads: readonly string[],
  body: string,
  host = '127.0.0.1',
  version = '1.1',
): string {
  const lines = [`${method} ${path} HTTP/${version}`, `Host: ${host}`, ...heads.filter((line) => line !== '')];
  return `${lines.join('\r\n')}\r\n\r\n${body}`;
}

/** A header line that is valid HTTP: a name, a colon, and no control characters; else ''. */
function soundHead(head: string): string {
  const clean = head.replaceAll(/[^\x20-\x7e\x80-\xff]/g, '');
  return /^[A-Za-z-]+: /.test(clean) &&
    !/^(content-length|transfer-encoding|connection|upgrade|expect|host)/i.test(clean)
    ? clean
    : '';
}

/** A request as readable text. */
export function printableRequest({ bytes }: FuzzRequest): string {
  return JSON.stringify(bytes.slice(0, 2000));
}
