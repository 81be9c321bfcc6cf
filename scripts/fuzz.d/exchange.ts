// Sends requests over raw sockets: pipelined, in pieces, partial, or abandoned.
import { connect, type Socket } from 'node:net';
import type { TLSSocket } from 'node:tls';
import type { FuzzRequest } from './requests.ts';

/** A connection that is being opened. */
interface Dialled {
  readonly socket: Socket | TLSSocket;
  /** The event after which requests may be written. */
  readonly ready: 'connect' | 'secureConnect';
  /** Resets the connection. */
  reset(): void;
}

/** Opens a connection to the destination of requests. */
export type Dial = () => Dialled;

/** A response, head and body, in Latin-1. */
export interface RawResponse {
  readonly status: number;
  readonly text: string;
}

/** The result of requests on one connection. */
export interface ExchangeResult {
  readonly responses: readonly RawResponse[];
  /** The server announced that it closes the connection, or began an endless response: no more responses are due. */
  readonly closed: boolean;
  readonly how: string;
}

/** Timeouts for all responses of a connection, in ms: if they must come, and if there may be none. */
const RESPONSE_TIMEOUT_MS = 30_000;
const OPTIONAL_RESPONSE_TIMEOUT_MS = 300;

/** The hub and the emulator read requests up to this size in any case, in bytes. */
const MAX_BODY = 16 * 1024;

/** Opens connections to an origin over plain HTTP. */
export function plainDial(origin: string): Dial {
  const { hostname, port } = new URL(origin);
  return () => {
    const socket = connect({ host: hostname, port: Number(port), noDelay: true });
    return { socket, ready: 'connect', reset: () => socket.resetAndDestroy() };
  };
}

/** Sends requests on one connection and reads their responses. A request that is not sound needs its own connection. */
export function exchangeRequests(dial: Dial, requests: readonly FuzzRequest[]): Promise<ExchangeResult> {
  const sound = requests[0]?.sound === true;
  return new Promise((resolve) => {
    const got: RawResponse[] = [];
    let received = '';
    let closed = false;
    const connection = dial();
    const { socket } = connection;
    const limit = setTimeout(
      () => done('it took too long'),
      sound ? RESPONSE_TIMEOUT_MS : OPTIONAL_RESPONSE_TIMEOUT_MS,
    );
    const done = (how: string) => {
      clearTimeout(limit);
      if (how === RESET) connection.reset();
      else socket.destroy();
      resolve({ responses: got, closed, how });
    };
    socket.setEncoding('latin1');
    socket.on(connection.ready, async () => {
      await write(socket, requests);
      if (requests[0]?.isReset === true) setImmediate(done, RESET);
      // The request may be incomplete, so its end is signalled.
      else if (!sound) socket.end();
    });
    socket.on('data', (chunk) => {
      received += chunk;
      for (;;) {
        const answer = takeAnswer(received, requests[got.length]?.method ?? 'GET');
        if (answer === null) break;
        received = received.slice(answer.length);
        if (answer.status < 200) continue;
        closed ||= answer.last;
        got.push({ status: answer.status, text: answer.text });
        if (answer.endless) return done(RESET);
        if (got.length === requests.length || answer.last) return done('answered');
      }
    });
    socket.on('error', (error: NodeJS.ErrnoException) => {
      // A server need not read an unwanted body, and a client that is still writing may lose the response (RFC 9112,
      // 9.6).
      closed ||= error.code === 'EPIPE' && requests.some(({ bytes }) => bytes.length > MAX_BODY);
      done(String(error));
    });
    socket.on('close', () => done('the connection was closed'));
  });
}

const RESET = 'reset';

async function write(socket: Socket, requests: readonly FuzzRequest[]): Promise<void> {
  const [first] = requests;
  if (first === undefined) return;
  if (first.pieces === 1) {
    socket.write(requests.map(({ bytes }) => bytes).join(''), 'latin1');
  } else {
    const size = Math.ceil(first.bytes.length / first.pieces);
    for (let at = 0; at < first.bytes.length && socket.writable; at += size) {
      socket.write(first.bytes.slice(at, at + size), 'latin1');
      await new Promise((resolve) => setImmediate(resolve));
    }
  }
}

/** The first response in the received text, or null if it is incomplete. */
function takeAnswer(received: string, method: string) {
  const end = received.indexOf('\r\n\r\n');
  if (end === -1) return null;
  const head = received.slice(0, end);
  const status = Number(/^HTTP\/1\.1 (\d{3})/.exec(head)?.[1] ?? 599);
  const bodiless = method === 'HEAD' || status < 200 || status === 204 || status === 304;
  const endless = !bodiless && /^content-type: text\/event-stream/im.test(head);
  const length = endless ? received.length : bodiless ? end + 4 : wholeLength(received, head, end + 4);
  if (received.length < length) return null;
  const last = endless || /^connection: close/im.test(head);
  return { status, length, text: received.slice(0, length), last, endless };
}

/** The length of a response with its body; more than was received if it is not known yet. */
function wholeLength(received: string, head: string, bodyAt: number): number {
  if (!/^transfer-encoding: chunked/im.test(head)) {
    return bodyAt + Number(/^content-length: (\d+)/im.exec(head)?.[1] ?? 0);
  }
  for (let at = bodyAt; ; ) {
    const line = received.indexOf('\r\n', at);
    if (line === -1) return Number.POSITIVE_INFINITY;
    const size = Number.parseInt(received.slice(at, line), 16);
    at = line + 2 + size + 2;
    if (!(size > 0)) return at;
  }
}
