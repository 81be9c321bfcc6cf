import { createServer, type IncomingMessage, type RequestListener } from 'node:http';
import type { Socket } from 'node:net';
import type { FastifyInstance } from 'fastify';
import type { Clock, Timers } from '../core/clock.ts';
import { messageOf } from '../core/failure.ts';
import type { Log } from '../core/log.ts';
import { isSameAddress, unmapIpv4 } from '../system/addresses.ts';
import { isOwnHost } from '../system/http/host-check.ts';
import { createHttpApp, HTTP_OPTIONS, isWellFormed, type NotFoundPage } from './http-app.ts';
import { BAD_REQUEST_TEXT, Listener } from './listener.ts';
import { ListeningSocket } from './listening-socket.ts';

/** The shortest time between two lines, in ms. */
const LOG_INTERVAL = 600_000;

/** Logs refused connections: the first at once, and those that follow together, however many there are. */
class RefusalLog {
  readonly #log: Log;
  readonly #clock: Clock;
  /** When the last line was logged, on the boot clock in ms; null before the first. */
  #loggedAt: number | null = null;
  /** Refusals since then. */
  #count = 0;

  constructor({ log, clock }: { readonly log: Log; readonly clock: Clock }) {
    this.#log = log;
    this.#clock = clock;
  }

  /** @param address of the client */
  record(address: string): void {
    this.#count += 1;
    const now = this.#clock.now().uptime;
    if (this.#loggedAt !== null && now - this.#loggedAt < LOG_INTERVAL) return;
    this.#log.warn('ingress_connection_refused', { address, count: this.#count });
    this.#loggedAt = now;
    this.#count = 0;
  }
}

/** The pages for the users of a reverse proxy. */
interface IngressPages extends NotFoundPage {
  registerIngressRoutes(app: FastifyInstance): void;
}

/** Where to listen, and for whom. */
export interface IngressServerOptions {
  /** An IP address. */
  readonly host: string;
  /** 0 for any free one. */
  readonly port: number;
  /** The IP address of the reverse proxy; connections from any other are refused. */
  readonly from: string;
  /** The host names that a browser may have requested, in lower case; empty for any. IP addresses are always accepted. */
  readonly hosts: readonly string[];
  readonly pages: IngressPages;
  readonly log: Log;
  readonly clock: Clock;
  readonly timers: Timers;
}

/** Connections at a time: some browsers, each with live updates. */
const MAX_CONNECTIONS = 250;
const FOREIGN_HOST_TEXT = 'The host name in the request is not in ingress.hosts of the hub.\n';
const REFUSAL_TEXT = 'This port is only for the reverse proxy of the hub.';
/** How long until an unavailable port is tried again, in ms. */
const RETRY_INTERVAL = 30_000;

/**
 * Serves the installer's page to a reverse proxy over plain HTTP. If its port is unavailable, it keeps trying, and the
 * hub runs without it.
 */
export class IngressServer implements AsyncDisposable {
  readonly #options: IngressServerOptions;
  readonly #handler: RequestListener;
  readonly #refusals: RefusalLog;
  #opened: { readonly socket: ListeningSocket; readonly listener: Listener } | null = null;
  #cancelRetry: () => void = () => undefined;
  #isClosed = false;
  #hasWarned = false;

  private constructor(options: IngressServerOptions, handler: RequestListener) {
    this.#options = options;
    this.#handler = handler;
    this.#refusals = new RefusalLog(options);
  }

  /** Resolves after the first attempt to open the port, even if that failed. */
  static async open(options: IngressServerOptions): Promise<IngressServer> {
    const app = createHttpApp(options.pages, options.log);
    options.pages.registerIngressRoutes(app);
    await app.ready();
    const server = new IngressServer(options, (request, response) => {
      // The connection was closed because it sent too many requests at once.
      if (request.socket.destroyed) return;
      if (!isForHost(request, options.hosts)) {
        response.writeHead(421, { 'content-type': 'text/plain; charset=utf-8' }).end(FOREIGN_HOST_TEXT);
      } else if (isWellFormed(request)) app.routing(request, response);
      else response.writeHead(400, { 'content-type': 'text/plain; charset=utf-8' }).end(BAD_REQUEST_TEXT);
    });
    await server.#listen();
    return server;
  }

  /** The port in use; null while it is unavailable. */
  get port(): number | null {
    return this.#opened?.socket.port ?? null;
  }

  async #listen(): Promise<void> {
    const { host, port, from, log, timers } = this.#options;
    try {
      const socket = await ListeningSocket.listen({ host, port });
      const listener = new Listener(createServer(HTTP_OPTIONS, this.#handler), socket, {
        allowHalfOpen: true,
        timers,
        // All users come through the one proxy.
        limits: { total: MAX_CONNECTIONS, perAddress: MAX_CONNECTIONS },
        refusal: (connection) => this.#refusal(connection),
      });
      this.#opened = { socket, listener };
      log.info('ingress_listening', { host, port: socket.port, from });
      if (this.#isClosed) await this.#close();
    } catch (error) {
      if (!this.#hasWarned)
        log.warn('ingress_unavailable', { host, port, error: messageOf(error), retry_in: RETRY_INTERVAL / 1000 });
      this.#hasWarned = true;
      if (!this.#isClosed) this.#cancelRetry = timers.after(RETRY_INTERVAL, () => void this.#listen());
    }
  }

  /** Records a connection that does not come from the proxy. */
  #refusal({ remoteAddress = '' }: Socket): string | null {
    const address = unmapIpv4(remoteAddress);
    if (isSameAddress(address, this.#options.from)) return null;
    this.#refusals.record(address);
    return REFUSAL_TEXT;
  }

  async #close(): Promise<void> {
    const opened = this.#opened;
    this.#opened = null;
    if (opened === null) return;
    await opened.listener.close();
    opened.socket.close();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#isClosed = true;
    this.#cancelRetry();
    await this.#close();
  }
}

/**
 * Whether the host that the browser has requested is permitted, by both headers in which a proxy passes it on. A web page
 * can make its own host name point to the proxy (DNS rebinding).
 */
function isForHost({ headers }: IncomingMessage, hosts: readonly string[]): boolean {
  if (hosts.length === 0) return true;
  // A proxy may append to what the page itself has sent.
  const forwarded = String(headers['x-forwarded-host'] ?? '').split(',');
  const requested = [headers.host, ...forwarded.map((host) => host.trim())].filter((host) => host !== '');
  return requested.every((host) => isOwnHost(host, hosts));
}
