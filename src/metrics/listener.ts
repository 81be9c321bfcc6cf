import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Duplex } from 'node:stream';
import type { Timers } from '../core/clock.ts';
import { messageOf } from '../core/failure.ts';
import { limitInFlightRequests } from '../system/http/in-flight-requests.ts';
import { createEndpointHandler, type EndpointsContext } from './endpoints.ts';

/** Where to listen, and what the endpoints need. */
export interface MetricsListenerOptions extends EndpointsContext {
  /** An IP address. */
  readonly host: string;
  /** 0 for any free one. */
  readonly port: number;
  readonly timers: Timers;
}

/** Limits for slow or hostile clients, in ms and bytes. Node checks the first two timeouts once per interval. */
const TIMEOUTS = {
  headersTimeout: 10_000,
  requestTimeout: 15_000,
  connectionsCheckingInterval: 30_000,
  keepAliveTimeout: 65_000,
  maxHeaderSize: 8 * 1024,
};
/** A connection is closed if nothing moves on it for this time while a response is due, in ms. */
const INACTIVITY_TIMEOUT = 15_000;
/** Connections at a time: one scraper, and some people. */
const MAX_CONNECTIONS = 32;
const MAX_IN_FLIGHT = { perConnection: 8, total: MAX_CONNECTIONS };
/** How long until an unavailable port is tried again, in ms. */
const RETRY_INTERVAL = 30_000;
/** How long a rejected connection stays open so that the client can read the reason, in ms. */
const LINGER_TIMEOUT = 1000;

/** The listener for metrics and health. If its port is unavailable, it keeps trying, and the hub runs without it. */
export class MetricsListener implements AsyncDisposable {
  readonly #options: MetricsListenerOptions;
  readonly #server: Server;
  #cancelRetry: () => void = () => undefined;
  #isClosed = false;
  #hasWarned = false;

  private constructor(options: MetricsListenerOptions) {
    this.#options = options;
    this.#server = createServer(TIMEOUTS, createEndpointHandler(options));
    this.#server.timeout = INACTIVITY_TIMEOUT;
    this.#server.maxConnections = MAX_CONNECTIONS;
    limitInFlightRequests(this.#server, MAX_IN_FLIGHT);
    this.#server.on('clientError', (_error, socket: Duplex) => {
      if (socket.writable) socket.end('HTTP/1.1 400 Bad Request\r\nconnection: close\r\ncontent-length: 0\r\n\r\n');
      options.timers.after(LINGER_TIMEOUT, () => socket.destroy());
    });
  }

  /** Resolves after the first attempt to open the port, even if that failed. */
  static async open(options: MetricsListenerOptions): Promise<MetricsListener> {
    const listener = new MetricsListener(options);
    await listener.#listen();
    return listener;
  }

  /** The port in use; null while it is unavailable. */
  get port(): number | null {
    const address: AddressInfo | string | null = this.#server.address();
    return address === null || typeof address === 'string' ? null : address.port;
  }

  async #listen(): Promise<void> {
    const { host, port, log, timers } = this.#options;
    const failure = await new Promise<Error | null>((resolve) => {
      this.#server.once('error', resolve);
      this.#server.listen({ host, port }, () => {
        this.#server.off('error', resolve);
        resolve(null);
      });
    });
    if (failure === null) {
      // Later errors concern a single connection.
      this.#server.on('error', (error) => log.warn('metrics_listener_failed', { error: messageOf(error) }));
      log.info('metrics_listening', { host, port: this.port });
      return;
    }
    if (!this.#hasWarned) {
      const error = messageOf(failure);
      log.warn('metrics_unavailable', { host, port, error, retry_in: RETRY_INTERVAL / 1000 });
    }
    this.#hasWarned = true;
    if (!this.#isClosed) this.#cancelRetry = timers.after(RETRY_INTERVAL, () => void this.#listen());
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#isClosed = true;
    this.#cancelRetry();
    const closed = new Promise<void>((resolve) => this.#server.close(() => resolve()));
    this.#server.closeAllConnections();
    await closed;
  }
}
