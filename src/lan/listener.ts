import { createServer, type IncomingMessage, type RequestListener, type ServerResponse } from 'node:http';
import { createServer as createSecureServer } from 'node:https';
import { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import type { SecureContextOptions } from 'node:tls';
import type { Timers } from '../core/clock.ts';
import { rateLimitKey } from '../system/limits/rate-limit-key.ts';
import type { ListeningSocket } from './listening-socket.ts';

/** Limits for slow or malicious clients, in ms and bytes. Node checks the first two timeouts once per interval. */
const SERVER_OPTIONS = {
  headersTimeout: 10_000,
  requestTimeout: 15_000,
  connectionsCheckingInterval: 2000,
  keepAliveTimeout: 65_000,
  maxHeaderSize: 16 * 1024,
};
const HANDSHAKE_TIMEOUT = 10_000;
/** How long requests in flight may take to end when the hub stops serving, in ms. */
const DRAIN_TIMEOUT = 3000;
/**
 * How long connections stay open when the hub stops for good, in ms: requests that were sent already are read, and a
 * busy client closes its connection itself after its next response.
 */
const CLOSE_DELAY = 250;
/** The same if systemd keeps the port open: a client that asks every second then loses no request. */
const ACTIVATED_CLOSE_DELAY = 1500;
/**
 * Requests in flight, which means until their responses are read: a thousand clients must not fill the memory. Above the
 * total, a connection may have only one.
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

/** How a hub serves the connections of a {@link Listener}. */
interface ListenerOptions {
  readonly serve: RequestListener;
  /** The server certificate and how to use it; null: plain HTTP. */
  readonly tls: SecureContextOptions | null;
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
 * connection. It outlives the hub that opened it: the connections stay open for the next hub on the same socket, and
 * their requests wait for it.
 */
export class Listener implements Disposable {
  readonly #server: ReturnType<typeof createServer> | ReturnType<typeof createSecureServer>;
  readonly #socket: ListeningSocket;
  readonly #limiter: ConnectionLimiter;
  readonly #refused = new ConnectionLimiter(REFUSED_LIMITS);
  #options: ListenerOptions;
  /** Null while one hub replaces another. */
  #serve: RequestListener | null = null;
  /** The requests that arrived meanwhile. */
  readonly #waiting: Parameters<RequestListener>[] = [];
  /** How many requests of each connection are in flight, and of all together. */
  readonly #inFlight = new Map<Socket, number>();
  #totalInFlight = 0;
  /** How many requests the hub works on: a collection of their responses would make V8 keep their garbage for long. */
  #inProgress = 0;
  /** Called when the hub works on none any more. */
  #onIdle: () => void = () => undefined;
  /** Whether responses ask their clients to close the connection, and whether the hub closes each one that is idle. */
  #isDraining = false;
  #closesIdle = false;

  private constructor(socket: ListeningSocket, options: ListenerOptions) {
    this.#socket = socket;
    this.#options = options;
    this.#limiter = new ConnectionLimiter(options.limits);
    this.#server = this.#isSecure
      ? createSecureServer({ ...SERVER_OPTIONS, handshakeTimeout: HANDSHAKE_TIMEOUT })
      : createServer(SERVER_OPTIONS);
    this.#server.on('request', (request, response) => this.#receiveRequest(request, response));
    this.#server.timeout = INACTIVITY_TIMEOUT;
    this.#server.on('clientError', (error: Error & { code?: string }, failed: Duplex) =>
      this.#rejectRequest(error, failed),
    );
  }

  /** Serves a socket, together with the connections that the previous hub of this process has left open. */
  static open(socket: ListeningSocket, options: ListenerOptions): Listener {
    const { predecessor } = socket;
    socket.predecessor = null;
    // After a change of the ports, the other kind of server may have used the socket.
    const isReusable = predecessor instanceof Listener && predecessor.#isSecure === (options.tls !== null);
    if (!isReusable) predecessor?.[Symbol.dispose]();
    const listener = isReusable ? predecessor : new Listener(socket, options);
    listener.#open(options);
    return listener;
  }

  /** The open connections. */
  get connections(): readonly Socket[] {
    return this.#limiter.sockets;
  }

  /** Sets the server certificate for new connections; open ones continue. TLS sessions can't be resumed afterwards. */
  setTls(tls: SecureContextOptions): void {
    if ('setSecureContext' in this.#server) this.#server.setSecureContext(tls);
  }

  /**
   * Ends the requests in flight. If the socket stays open for another hub, so do the connections; otherwise they are
   * closed after their responses.
   */
  async close(): Promise<void> {
    this.#socket.detach();
    await (this.#socket.isClosed ? this.#closeConnections() : this.#pause());
    for (const connection of this.#refused.sockets) connection.destroy();
  }

  /** Closes all connections at once. */
  [Symbol.dispose](): void {
    this.#serve = null;
    for (const connection of this.connections) connection.destroy();
    this.#server.close();
  }

  get #isSecure(): boolean {
    return this.#options.tls !== null;
  }

  #open(options: ListenerOptions): void {
    this.#options = options;
    if (options.tls !== null) this.setTls(options.tls);
    for (const connection of this.connections) if (this.#refusalOf(connection) !== null) connection.destroy();
    this.#serve = options.serve;
    for (const [request, response] of this.#waiting.splice(0)) this.#handleRequest(request, response);
    this.#socket.attach((connection) => this.#handleConnection(connection));
  }

  async #pause(): Promise<void> {
    this.#socket.predecessor = this;
    this.#serve = null;
    if (this.#inProgress === 0) return;
    const cancelDrain = this.#options.timers.after(DRAIN_TIMEOUT, () => {
      const waiting = Map.groupBy(this.#waiting, ([{ socket }]) => socket);
      for (const [connection, inFlight] of this.#inFlight)
        if (inFlight > (waiting.get(connection)?.length ?? 0)) connection.destroy();
    });
    await new Promise<void>((resolve) => {
      this.#onIdle = resolve;
    });
    cancelDrain();
  }

  async #closeConnections(): Promise<void> {
    const { timers } = this.#options;
    this.#isDraining = true;
    const delay = this.#socket.isActivated ? ACTIVATED_CLOSE_DELAY : CLOSE_DELAY;
    const cancelClose = timers.after(delay, () => {
      this.#closesIdle = true;
      this.#server.closeIdleConnections();
    });
    const cancelDrain = timers.after(DRAIN_TIMEOUT, () => {
      for (const connection of this.connections) connection.destroy();
    });
    await this.#limiter.drain();
    cancelClose();
    cancelDrain();
    this.#server.close();
  }

  /**
   * Counts a request. Closes a connection that sends too many without waiting for responses (HTTP pipelining), because
   * the hub would work on all of them at once.
   */
  #receiveRequest(request: IncomingMessage, response: ServerResponse): void {
    const { socket } = request;
    // A request that arrived together with one too many.
    if (socket.destroyed) return;
    const inFlight = (this.#inFlight.get(socket) ?? 0) + 1;
    this.#inFlight.set(socket, inFlight);
    this.#totalInFlight += 1;
    response.on('close', () => this.#countResponse(socket));
    if (this.#isDraining) response.setHeader('connection', 'close');
    const { perConnection, total } = MAX_IN_FLIGHT;
    if (inFlight > perConnection || (inFlight > 1 && this.#totalInFlight > total)) socket.destroy();
    else this.#handleRequest(request, response);
  }

  #countResponse(connection: Socket): void {
    const others = (this.#inFlight.get(connection) ?? 1) - 1;
    if (others === 0) this.#inFlight.delete(connection);
    else this.#inFlight.set(connection, others);
    this.#totalInFlight -= 1;
    if (this.#closesIdle) this.#server.closeIdleConnections();
  }

  #handleRequest(request: IncomingMessage, response: ServerResponse): void {
    // The connection was closed while the request waited, perhaps because it sent too many at once.
    if (request.socket.destroyed) return;
    if (this.#serve === null) {
      this.#waiting.push([request, response]);
      return;
    }
    this.#inProgress += 1;
    response.on('close', () => {
      this.#inProgress -= 1;
      if (this.#inProgress === 0) this.#onIdle();
    });
    this.#serve(request, response);
  }

  #refusalOf(connection: Socket): string | null {
    // A client that has reset the connection already has no address.
    return connection.remoteAddress === undefined ? null : (this.#options.refusal?.(connection) ?? null);
  }

  /**
   * Starts the server's check for slow requests with the first connection and stops it after the last: an idle hub
   * sleeps.
   */
  #handleConnection(connection: Socket): void {
    const refusal = this.#refusalOf(connection);
    if (refusal !== null) {
      this.#refuse(connection, refusal);
      return;
    }
    const isFirst = this.#limiter.size === 0;
    if (!this.#limiter.admit(connection)) return;
    if (isFirst) this.#server.emit('listening');
    connection.once('close', () => {
      if (this.#limiter.size === 0) this.#server.close();
    });
    connection.allowHalfOpen = !this.#isSecure;
    this.#server.emit('connection', connection);
    connection.resume();
  }

  #refuse(connection: Socket, text: string): void {
    if (!this.#refused.admit(connection)) return;
    connection.allowHalfOpen = !this.#isSecure;
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
