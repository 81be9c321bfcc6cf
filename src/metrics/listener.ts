import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Duplex } from 'node:stream';
import { MAX_TIMER_DELAY, type Timers } from '../core/clock.ts';
import { messageOf } from '../core/failure.ts';
import type { Log } from '../core/log.ts';
import { isOwnHost } from '../system/http/host-check.ts';
import { limitInFlightRequests } from '../system/http/in-flight-requests.ts';
import { type ExpositionContext, renderMetrics } from './exposition.ts';
import { readiness } from './readiness.ts';

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

/** What {@link createEndpointHandler} needs. */
interface EndpointsContext extends ExpositionContext {
  /** How long the next planned task has been due, in ms on the boot clock. */
  overdue(): number;
  /** The DNS names under which the hub can be requested, in lower case, including those of loopback. */
  hostNames(): readonly string[];
  readonly log: Log;
}

interface MetricsResponse {
  readonly status: number;
  readonly type?: string;
  readonly body: string;
  readonly headers?: Readonly<Record<string, string>>;
}

/** How long a task may be overdue, in ms on the boot clock; the same as for systemd's watchdog. */
const MAX_OVERDUE = MAX_TIMER_DELAY + 30_000;

const TEXT_TYPE = 'text/plain; charset=utf-8';
const JSON_TYPE = 'application/json';
const NOT_FOUND_TEXT = 'Not found. The paths are /metrics, /healthz and /readyz.\n';

/** Handles requests of Prometheus, and of programs that supervise the daemon. */
function createEndpointHandler(
  context: EndpointsContext,
): (request: IncomingMessage, response: ServerResponse) => void {
  const routes: Readonly<Record<string, () => Promise<MetricsResponse>>> = {
    async '/metrics'() {
      return { status: 200, type: 'text/plain; version=0.0.4; charset=utf-8', body: await renderMetrics(context) };
    },
    async '/healthz'() {
      const overdue = context.overdue();
      if (overdue <= MAX_OVERDUE) return json(200, { healthy: true });
      const reason = `the scheduler is ${Math.round(overdue / 1000)} s overdue`;
      return json(503, { healthy: false, reason });
    },
    async '/readyz'() {
      const { appliances } = await context.status();
      const result = readiness(appliances);
      return json(result.ready ? 200 : 503, result);
    },
  };

  async function respond({ method, url = '', headers, rawHeaders }: IncomingMessage): Promise<MetricsResponse> {
    // RFC 9112, 3.2: exactly one Host, and no absolute URL, which would take precedence over it.
    const hosts = rawHeaders.filter((name, index) => index % 2 === 0 && name.toLowerCase() === 'host');
    if (hosts.length > 1 || !url.startsWith('/')) return rejection(400, 'Invalid request.\n');
    if (!isOwnHost(headers.host, context.hostNames())) {
      return rejection(421, 'The Host header is not a name or an address of this Latchkey hub.\n');
    }
    const [path = ''] = url.split('?');
    const route = Object.hasOwn(routes, path) ? routes[path] : undefined;
    if (route === undefined) return { status: 404, body: NOT_FOUND_TEXT };
    if (method !== 'GET' && method !== 'HEAD') return { status: 405, body: '', headers: { allow: 'GET, HEAD' } };
    return route();
  }

  return (request, response) => {
    // One of too many requests at once, for which the connection was closed.
    if (request.socket.destroyed) return;
    respond(request)
      .catch((error: unknown): MetricsResponse => {
        context.log.error('metrics_request_failed', { error: messageOf(error) });
        return { status: 500, body: "Internal error; see the hub's log.\n" };
      })
      .then(({ status, type = TEXT_TYPE, body, headers = {} }) => {
        response.writeHead(status, {
          'content-type': type,
          'content-length': Buffer.byteLength(body),
          'cache-control': 'no-store',
          'x-content-type-options': 'nosniff',
          ...headers,
        });
        response.end(request.method === 'HEAD' ? undefined : body);
      });
  };
}

function json(status: number, body: object): MetricsResponse {
  return { status, type: JSON_TYPE, body: `${JSON.stringify(body)}\n` };
}

/** Rejects the request and closes the connection. */
function rejection(status: number, body: string): MetricsResponse {
  return { status, body, headers: { connection: 'close' } };
}
