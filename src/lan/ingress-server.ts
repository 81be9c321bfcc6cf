import type { IncomingMessage } from 'node:http';
import type { FastifyInstance } from 'fastify';
import type { Clock } from '../core/clock.ts';
import type { Log } from '../core/log.ts';
import { isSameAddress, unmapIpv4 } from '../system/addresses.ts';
import { isOwnHost } from '../system/http/host-check.ts';
import { createHttpApp, type NotFoundPage } from './http-app.ts';
import { OptionalServer, type OptionalServerOptions } from './optional-server.ts';

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
export interface IngressServerOptions extends Pick<OptionalServerOptions, 'port' | 'sockets' | 'timers'> {
  /** An IP address. */
  readonly host: string;
  /** The IP address of the reverse proxy; connections from any other are refused. */
  readonly from: string;
  /** The host names that a browser may have requested, in lower case; empty for any. IP addresses are always accepted. */
  readonly hosts: readonly string[];
  readonly pages: IngressPages;
  readonly log: Log;
  readonly clock: Clock;
}

const FOREIGN_HOST_TEXT = 'The host name in the request is not in ingress.hosts of the hub.\n';
const REFUSAL_TEXT = 'This port is only for the reverse proxy of the hub.';

/** Serves the installer's page to a reverse proxy over plain HTTP. */
export async function openIngressServer(options: IngressServerOptions): Promise<OptionalServer> {
  const { from, hosts, pages, log } = options;
  const app = createHttpApp(pages, log);
  pages.registerIngressRoutes(app);
  await app.ready();
  const refusals = new RefusalLog(options);
  return OptionalServer.open({
    ...options,
    name: 'ingress',
    hosts: [options.host],
    refusal({ remoteAddress = '' }) {
      const address = unmapIpv4(remoteAddress);
      if (isSameAddress(address, from)) return null;
      refusals.record(address);
      return REFUSAL_TEXT;
    },
    rejection: (request) => (isForHost(request, hosts) ? null : { status: 421, text: FOREIGN_HOST_TEXT }),
    serve: app.routing,
    onListening: (port) => log.info('ingress_listening', { host: options.host, port, from }),
    onUnavailable: (unavailable) => log.warn('ingress_unavailable', { host: options.host, ...unavailable }),
  });
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
