// Makes the requests of the fuzz: each follows from the seed, its number and what its planner knows.
import { METHODS } from 'node:http';
import { Dice } from './dice.ts';
import { mutated, SPECIAL, soup } from './mutations.ts';
import type { Origin, Plan, Planner } from './plan.ts';

/** One request, as it goes over the wire. */
export interface FuzzRequest {
  readonly origin: Origin;
  readonly method: string;
  readonly path: string;
  /** In Latin-1. */
  readonly bytes: string;
  /** Whether HTTP itself is kept, so that an answer must come and the connection goes on. */
  readonly sound: boolean;
  /** Whether other requests may follow it on its connection before it is answered. */
  readonly pipelined: boolean;
  /** The bytes are written in this many pieces. */
  readonly pieces: number;
  /**
   * What becomes of a connection of its own, where that is not simply used: `reset`: at once after the bytes;
   * `left`: it stays open, and nothing more is sent or read.
   */
  readonly given: 'up' | 'reset' | 'left';
  /** As its plan has it. */
  readonly forged?: boolean;
}

/** The request with this number. */
export function requestOf(seed: number, number: number, planner: Planner): FuzzRequest {
  const dice = new Dice(Math.imul(seed + 1, 0x9e3779b1) ^ Math.imul(number + 1, 0x85ebca6b));
  const kind = dice.fraction();
  if (kind < 0.35) return good(dice, planner);
  if (kind < 0.37) return abandoned(dice, planner);
  return kind < 0.96 ? sound(dice, planner) : broken(dice, planner);
}

const USED = { sound: true, pipelined: true, pieces: 1, given: 'up' } as const;

/** With nothing wrong in it, unless what it refers to is no longer there. */
function good(dice: Dice, planner: Planner): FuzzRequest {
  const { origin, method, heads, body = '', ...planned } = planner(dice, true);
  const path = visible(planned.path);
  const lines = [...heads, ...(body === '' && method === 'GET' ? [] : [`Content-Length: ${body.length}`])];
  return { ...USED, origin, method, path, bytes: written(method, path, lines, body) };
}

/** Half a request, or one whose answer nobody waits for. */
function abandoned(dice: Dice, planner: Planner): FuzzRequest {
  const whole = good(dice, planner);
  const bytes = dice.chance(0.4) ? whole.bytes : whole.bytes.slice(0, dice.below(whole.bytes.length));
  const given = dice.chance(0.7) ? 'reset' : 'left';
  return { ...whole, bytes, given, sound: false, pipelined: false };
}

/** Mutated above HTTP: an answer must come. */
function sound(dice: Dice, planner: Planner): FuzzRequest {
  const planned = planner(dice, false);
  const method = methodOf(dice, planned);
  const clean = visible(pathOf(dice, planned)).replace(/^\/+/, '').slice(0, 6000);
  const path = dice.chance(0.005) ? dice.of(['*', `http://evil.example/${clean}`], '*') : `/${clean}`;
  const heads = headsOf(dice, planned).map(soundHead);
  const body = planned.body ?? (dice.chance(0.05) ? soup(dice, 200) : '');
  const connection = dice.chance(0.02) ? dice.of(CONNECTION_HEADS, '') : '';
  heads.push(connection);
  const pieces = dice.chance(0.03) ? 2 + dice.below(4) : 1;
  // Node ends the connection after CONNECT. After an upgrade that was asked for, nothing may be sent before the answer.
  const old = dice.chance(0.01);
  const pipelined = pieces === 1 && connection === '' && method !== 'CONNECT' && !old;
  const version = old ? '1.0' : '1.1';
  const { origin, forged = false } = planned;
  const request = { ...USED, origin, method, path, pieces, pipelined, sound: method !== 'CONNECT', forged };
  const host = dice.chance(0.02) ? dice.of(HOSTS, '') : '127.0.0.1';
  if (body !== '' && dice.chance(0.05)) {
    const bytes = written(method, path, [...heads, 'Transfer-Encoding: chunked'], chunked(dice, body), host, version);
    return { ...request, bytes };
  }
  const length = body === '' && !dice.chance(0.3) ? [] : [`Content-Length: ${body.length}`];
  return { ...request, bytes: written(method, path, [...heads, ...length], body, host, version) };
}

/** Mutated to the last byte: there may be an answer or none. */
function broken(dice: Dice, planner: Planner): FuzzRequest {
  const planned = planner(dice, false);
  const [method, path, heads] = [methodOf(dice, planned), pathOf(dice, planned), headsOf(dice, planned)];
  let body = planned.body ?? (dice.chance(0.05) ? soup(dice, 200) : '');
  if (dice.chance(0.05)) body = body.padEnd(60_000 + dice.below(20_000), 'x');
  const length = dice.chance(0.7) ? `Content-Length: ${body.length}` : dice.of(LENGTHS, '');
  let bytes = written(method, path, [...heads, ...(body === '' && !dice.chance(0.3) ? [] : [length])], body);
  if (dice.chance(0.03)) bytes = dice.of(NO_HTTP, '') + soup(dice, 200);
  for (let i = dice.below(4); i > 0; i -= 1) bytes = mutated(dice, bytes);
  const pieces = dice.chance(0.03) ? 2 + dice.below(4) : 1;
  const { origin, forged = false } = planned;
  return { origin, method, path, bytes, sound: false, pipelined: false, pieces, given: 'up', forged };
}

function methodOf(dice: Dice, planned: Plan): string {
  return dice.chance(0.08) ? dice.of(METHODS, 'GET') : planned.method;
}

function pathOf(dice: Dice, planned: Plan): string {
  let path = planned.path;
  for (let i = dice.chance(0.4) ? 1 + dice.below(3) : 0; i > 0; i -= 1) path = mutated(dice, path);
  return path;
}

/** A path or query in which HTTP's own rules are kept. */
function visible(path: string): string {
  return path.replaceAll(/[^\x21-\x7e]/g, '%ff');
}

function headsOf(dice: Dice, planned: Plan): string[] {
  const heads = planned.heads.map((head) => (dice.chance(0.1) ? mutated(dice, head) : head));
  if (dice.chance(0.2)) heads.push(dice.of(HEADS, ''));
  if (dice.chance(0.02)) heads.push(`X-${dice.below(99)}: ${soup(dice, 3000)}`);
  return heads;
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

/** The chunked coding (RFC 9112, 7.1), with extensions and trailers now and then. */
function chunked(dice: Dice, body: string): string {
  const at = dice.below(body.length);
  const pieces = [body.slice(0, at), body.slice(at)].filter((piece) => piece !== '');
  const extension = dice.chance(0.2) ? ';a=b' : '';
  const coded = pieces.map((piece) => `${piece.length.toString(16)}${extension}\r\n${piece}\r\n`);
  return `${coded.join('')}0\r\n${dice.chance(0.2) ? 'X-Trailer: a\r\n' : ''}\r\n`;
}

/** A header line that HTTP takes: a name, a colon, and no control characters. */
function soundHead(head: string): string {
  const text = head.replaceAll(/[^\x20-\x7e\x80-\xff]/g, '');
  return /^[A-Za-z-]+: /.test(text) && !/^(content-length|transfer-encoding|connection|upgrade|expect|host)/i.test(text)
    ? text
    : '';
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
  ...SPECIAL.map((special) => `Authorization: Bearer ${special}`),
];
