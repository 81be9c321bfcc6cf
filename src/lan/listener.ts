import type { Server as HttpServer } from 'node:http';
import type { Server as HttpsServer } from 'node:https';
import { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import type { Timers } from '../core/clock.ts';
import { limitInFlightRequests, type RequestDraining } from '../system/http/in-flight-requests.ts';
import { rateLimitKey } from '../system/limits/rate-limit-key.ts';
import type { ListeningSocket } from './listening-socket.ts';

/** How long requests in flight may take to end when the listener closes, in ms. */
const DRAIN_TIMEOUT = 3000;
/**
 * How long connections stay open when the listener closes, in ms: requests that were sent already are read, and a busy
 * client closes its connection itself after its next response.
 */
const CLOSE_DELAY = 250;
/**
 * Requests in progress, including those whose responses no client reads: a thousand clients must not fill the memory.
 */
const MAX_IN_FLIGHT = { perConnection: 32, total: 250 };
/**
 * A connection with a pending response is closed after this long without traffic, in ms. No response takes longer than
 * 10 s.
 */
const INACTIVITY_TIMEOUT = 15_000;
/** How long a client may take to read the error response before its connection is closed, in ms. */
const LINGER_TIMEOUT = 1000;

/** OpenSSL's code for a plain HTTP request in place of a TLS handshake. */
const HTTP_ON_TLS_ERROR = 'ERR_SSL_HTTP_REQUEST';

/** Refused connections at a time. They have limits of their own, so that they take no places of those who are served. */
const REFUSED_LIMITS: ConnectionLimits = { total: 50, perAddress: 10 };
const REQUEST_TIMEOUT_RESPONSE = ['408 Request Timeout', 'The request took too long.'] as const;

/** Responses to errors that occur before a request is complete; all other errors are bad requests. */
const ERROR_RESPONSES: Readonly<Record<string, readonly [status: string, text: string]>> = {
  HPE_HEADER_OVERFLOW: ['431 Request Header Fields Too Large', 'The address or the headers are too long.'],
  [HTTP_ON_TLS_ERROR]: ['400 Bad Request', 'This port requires HTTPS: use an address that begins with https://'],
  ERR_HTTP_REQUEST_TIMEOUT: REQUEST_TIMEOUT_RESPONSE,
  // On a busy hub the handshake may still complete after the timeout; then the client can read this response.
  ERR_TLS_HANDSHAKE_TIMEOUT: REQUEST_TIMEOUT_RESPONSE,
};

/** The response to a request that can't be parsed. */
export const BAD_REQUEST_TEXT = 'The request is malformed.';

/** Options of a {@link Listener}. */
interface ListenerOptions {
  /** Whether a client that has closed its sending side still gets its response. */
  readonly allowHalfOpen: boolean;
  readonly timers: Timers;
  readonly limits?: ConnectionLimits;
  /**
   * The text of the 403 response to a connection that is refused, whatever it requests; null: it is served. Default:
   * all are.
   */
  refusal?(connection: Socket): string | null;
}

/**
 * A server and the socket whose connections it serves. Neither silent clients nor endless requests can hold a
 * connection.
 */
export class Listener<Server extends HttpServer | HttpsServer = HttpServer | HttpsServer> {
  readonly server: Server;
  readonly #socket: ListeningSocket;
  readonly #options: ListenerOptions;
  readonly #limiter: ConnectionLimiter;
  readonly #refused = new ConnectionLimiter(REFUSED_LIMITS);
  readonly #draining: RequestDraining;

  constructor(server: Server, socket: ListeningSocket, options: ListenerOptions) {
    this.server = server;
    this.#socket = socket;
    this.#options = options;
    this.#limiter = new ConnectionLimiter(options.limits);
    this.#draining = limitInFlightRequests(server, MAX_IN_FLIGHT);
    server.timeout = INACTIVITY_TIMEOUT;
    server.on('clientError', (error: Error & { code?: string }, failed: Duplex) => this.#rejectRequest(error, failed));
    socket.attach((connection) => this.#handleConnection(connection));
  }

  /** The open connections. */
  get connections(): readonly Socket[] {
    return this.#limiter.sockets;
  }

  /** Detaches from the socket, serves the open connections for a moment, and closes them after their responses. */
  async close(): Promise<void> {
    const { timers } = this.#options;
    this.#socket.detach();
    this.#draining.start();
    const cancelClose = timers.after(CLOSE_DELAY, () => this.#draining.closeIdle());
    const cancelDrain = timers.after(DRAIN_TIMEOUT, () => {
      for (const connection of this.connections) connection.destroy();
    });
    await this.#limiter.drain();
    for (const connection of this.#refused.sockets) connection.destroy();
    cancelClose();
    cancelDrain();
    this.server.close();
  }

  /**
   * Starts the server's check for slow requests with the first connection and stops it after the last: an idle hub
   * sleeps.
   */
  #handleConnection(connection: Socket): void {
    // A client that has reset the connection already has no address.
    const refusal = connection.remoteAddress === undefined ? null : (this.#options.refusal?.(connection) ?? null);
    if (refusal !== null) {
      this.#refuse(connection, refusal);
      return;
    }
    const isFirst = this.#limiter.size === 0;
    if (!this.#limiter.admit(connection)) return;
    if (isFirst) this.server.emit('listening');
    connection.once('close', () => {
      if (this.#limiter.size === 0) this.server.close();
    });
    connection.allowHalfOpen = this.#options.allowHalfOpen;
    this.server.emit('connection', connection);
    connection.resume();
  }

  #refuse(connection: Socket, text: string): void {
    if (!this.#refused.admit(connection)) return;
    connection.allowHalfOpen = this.#options.allowHalfOpen;
    connection.on('error', () => undefined);
    this.#sendAndClose(connection, ['403 Forbidden', text]);
    connection.resume();
  }

  /** Responds to a request that Node could not parse. */
  #rejectRequest({ code = '' }: Error & { code?: string }, failed: Duplex): void {
    const socket = code === HTTP_ON_TLS_ERROR ? this.#rawSocket(failed) : failed;
    this.#sendAndClose(socket, ERROR_RESPONSES[code] ?? ['400 Bad Request', BAD_REQUEST_TEXT]);
  }

  #sendAndClose(socket: Duplex, [status, text]: readonly [status: string, text: string]): void {
    const headers = `connection: close\r\ncontent-type: text/plain; charset=utf-8\r\ncontent-length: ${text.length}`;
    if (socket.writable) socket.end(`HTTP/1.1 ${status}\r\n${headers}\r\n\r\n${text}`);
    // Otherwise a client that never closes, or never finished its TLS handshake, would hold the connection for ever.
    this.#options.timers.after(LINGER_TIMEOUT, () => socket.destroy());
  }

  /** The TCP connection under a TLS socket. Node has no public property for it, but both have the same endpoints. */
  #rawSocket(secure: Duplex): Duplex {
    const endpoints = (socket: Socket) => [socket.remoteAddress, socket.remotePort, socket.localAddress].join(' ');
    if (!(secure instanceof Socket)) return secure;
    return this.connections.find((connection) => endpoints(connection) === endpoints(secure)) ?? secure;
  }
}

/** Maximum numbers of simultaneous connections. */
interface ConnectionLimits {
  readonly total: number;
  readonly perAddress: number;
}

const DEFAULT_LIMITS: ConnectionLimits = { total: 1000, perAddress: 250 };

/** Limits the connections of a server, in all and from each address. */
class ConnectionLimiter {
  readonly #limits: ConnectionLimits;
  /** The address that each connection counts for. */
  readonly #connections = new Map<Socket, string>();
  /** Called when the last connection closes; null while new ones are expected. */
  #onDrained: (() => void) | null = null;

  constructor(limits: ConnectionLimits = DEFAULT_LIMITS) {
    this.#limits = limits;
  }

  get size(): number {
    return this.#connections.size;
  }

  /** The open connections, including those in the TLS handshake. */
  get sockets(): readonly Socket[] {
    return [...this.#connections.keys()];
  }

  /** Admits or closes a new connection. @returns whether it is admitted */
  admit(socket: Socket): boolean {
    const { remoteAddress } = socket;
    // Without an address: the client has reset the connection already.
    const key = remoteAddress === undefined ? null : rateLimitKey(remoteAddress);
    if (key === null || this.#isFull(key)) {
      socket.destroy();
      return false;
    }
    this.#connections.set(socket, key);
    socket.once('close', () => {
      this.#connections.delete(socket);
      if (this.size === 0) this.#onDrained?.();
    });
    return true;
  }

  /** Resolves when all connections are closed. */
  async drain(): Promise<void> {
    if (this.size === 0) return;
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#onDrained = resolve;
    await promise;
  }

  #isFull(key: string): boolean {
    const { total, perAddress } = this.#limits;
    return this.size >= total || [...this.#connections.values()].filter((other) => other === key).length >= perAddress;
  }
}
