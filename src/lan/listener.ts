import type { Server as HttpServer } from 'node:http';
import type { Server as HttpsServer } from 'node:https';
import { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import type { Timers } from '../core/clock.ts';
import { limitInFlightRequests } from '../system/http/in-flight-requests.ts';
import { ConnectionLimiter, type ConnectionLimits } from './connection-limiter.ts';
import type { ListeningSocket } from './listening-socket.ts';

/** Requests under way get so long to end, in ms. */
const DRAIN_TIMEOUT = 3000;
/** Requests that are worked on, or whose responses nobody reads: a thousand neighbours must not fill the memory. */
const MAX_IN_FLIGHT = { perConnection: 32, total: 250 };
/** A connection on which nothing moves for so long, in ms, while a response is due: none takes longer than 10 s, so nobody reads it. */
const INACTIVITY_TIMEOUT = 15_000;
/** What is given up on is told why, and gets so long to read it, in ms. */
const LINGER_TIMEOUT = 1000;

/** OpenSSL's name for a plain HTTP request where a TLS handshake belongs. */
const HTTP_ON_TLS_ERROR = 'ERR_SSL_HTTP_REQUEST';

const REQUEST_TIMEOUT_RESPONSE = ['408 Request Timeout', 'The request took too long.'] as const;

/** What an error before a request is called on the wire; every other one is a bad request. */
const ERROR_RESPONSES: Readonly<Record<string, readonly [status: string, text: string]>> = {
  HPE_HEADER_OVERFLOW: ['431 Request Header Fields Too Large', 'The address or the headers are too long.'],
  [HTTP_ON_TLS_ERROR]: ['400 Bad Request', 'This port speaks HTTPS: begin the address with https://'],
  ERR_HTTP_REQUEST_TIMEOUT: REQUEST_TIMEOUT_RESPONSE,
  // On a busy hub the handshake ends while this is on its way, and the client reads it.
  ERR_TLS_HANDSHAKE_TIMEOUT: REQUEST_TIMEOUT_RESPONSE,
};

/** What is said of a request that is no HTTP. */
export const BAD_REQUEST_TEXT = 'The request can not be read.';

/** What a {@link Listener} takes. */
export interface ListenerOptions {
  /** Whether one who has said all and closed its side is still answered. */
  readonly allowHalfOpen: boolean;
  readonly timers: Timers;
  readonly limits?: ConnectionLimits;
}

/** A server and the socket whose connections it serves. None is held by silence, or by requests without end. */
export class Listener<Server extends HttpServer | HttpsServer = HttpServer | HttpsServer> {
  readonly server: Server;
  readonly #socket: ListeningSocket;
  readonly #options: ListenerOptions;
  readonly #limiter: ConnectionLimiter;
  readonly #drainRequests: () => void;

  constructor(server: Server, socket: ListeningSocket, options: ListenerOptions) {
    this.server = server;
    this.#socket = socket;
    this.#options = options;
    this.#limiter = new ConnectionLimiter(options.limits);
    this.#drainRequests = limitInFlightRequests(server, MAX_IN_FLIGHT);
    server.timeout = INACTIVITY_TIMEOUT;
    server.on('clientError', (error: Error & { code?: string }, failed: Duplex) => this.#rejectRequest(error, failed));
    socket.attach((connection) => this.#handleConnection(connection));
  }

  /** The open connections. */
  get connections(): readonly Socket[] {
    return this.#limiter.sockets;
  }

  /** Leaves the socket, closes idle connections, and cuts the others off when their time is up. */
  async close(): Promise<void> {
    this.#socket.detach();
    this.#drainRequests();
    const cancel = this.#options.timers.after(DRAIN_TIMEOUT, () => {
      for (const connection of this.connections) connection.destroy();
    });
    await this.#limiter.drain();
    cancel();
    this.server.close();
  }

  /** The server does not listen by itself: it looks for those that take too long while there is a connection, and sleeps else. */
  #handleConnection(connection: Socket): void {
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

  /** A request that is no HTTP gets a status. */
  #rejectRequest({ code = '' }: Error & { code?: string }, failed: Duplex): void {
    const socket = code === HTTP_ON_TLS_ERROR ? this.#rawSocket(failed) : failed;
    const [status, text] = ERROR_RESPONSES[code] ?? ['400 Bad Request', BAD_REQUEST_TEXT];
    const headers = `connection: close\r\ncontent-type: text/plain; charset=utf-8\r\ncontent-length: ${text.length}`;
    if (socket.writable) socket.end(`HTTP/1.1 ${status}\r\n${headers}\r\n\r\n${text}`);
    // One that never hangs up, or never came through the TLS handshake, would stay for ever.
    this.#options.timers.after(LINGER_TIMEOUT, () => socket.destroy());
  }

  /** The connection that a TLS socket was made of: Node has no public name for it, but both have the same ends. */
  #rawSocket(secure: Duplex): Duplex {
    const ends = (socket: Socket) => [socket.remoteAddress, socket.remotePort, socket.localAddress].join(' ');
    if (!(secure instanceof Socket)) return secure;
    return this.connections.find((connection) => ends(connection) === ends(secure)) ?? secure;
  }
}
