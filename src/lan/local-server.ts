import type { IncomingMessage } from 'node:http';
import type { Clock } from '../core/clock.ts';
import type { LanService } from '../core/lan-service.ts';
import type { Log } from '../core/log.ts';
import { isLoopbackHost } from '../system/addresses.ts';
import { createHttpApp, type Rejection } from './http-app.ts';
import type { AssertionReplayCache } from './oauth/assertion-replay-cache.ts';
import { serveOAuthEndpoints } from './oauth/authorization-server.ts';
import { OptionalServer, type OptionalServerOptions } from './optional-server.ts';

/** Where to listen, and what the endpoints need. */
export interface LocalServerOptions extends Pick<OptionalServerOptions, 'port' | 'sockets' | 'timers'> {
  readonly service: LanService;
  /** The address of the hub's page, without a trailing slash. */
  page(): string;
  readonly usedAssertions: AssertionReplayCache;
  readonly log: Log;
  readonly clock: Clock;
}

/** Both, because a program that asks `localhost` may try either first: nobody else may listen on the other. */
const HOSTS = ['127.0.0.1', '::1'];

/** Serves the OAuth endpoints to programs on this machine over plain HTTP, which nobody else can read there. */
export async function openLocalServer(options: LocalServerOptions): Promise<OptionalServer> {
  const { service, page, log } = options;
  const notFound = (status: number) => `There is no page here (${status}). The hub's page: ${page()}/\n`;
  const app = createHttpApp(
    { sendNotFound: (_request, reply, status) => reply.code(status).type('text/plain').send(notFound(status)) },
    log,
  );
  serveOAuthEndpoints(app, service, { ...options, isOwn: () => true });
  await app.ready();
  return OptionalServer.open({
    ...options,
    name: 'local',
    hosts: HOSTS,
    rejection: rejectForeign,
    serve: app.routing,
    onListening: (port) => log.info('local_listening', { port }),
    onUnavailable: (unavailable) => log.warn('local_unavailable', { ...unavailable }),
  });
}

/** What a proxy adds to the requests of others (RFC 7239, RFC 9110, 7.6.3). */
const PROXY_HEADERS = ['forwarded', 'via', 'x-forwarded-for', 'x-forwarded-host', 'x-real-ip'];

/** Rejects what does not come from a program on this machine, but from a web page or through a proxy. */
function rejectForeign({ headers }: IncomingMessage): Rejection | null {
  const hostname = (headers.host ?? '').replace(/:\d{1,5}$/, '');
  if (!isLoopbackHost(hostname.toLowerCase()))
    return { status: 421, text: 'This port is only for programs on this machine: use 127.0.0.1 or localhost.\n' };
  if (headers.origin !== undefined) return { status: 403, text: 'This port is not for web pages.\n' };
  const proxied = PROXY_HEADERS.find((name) => headers[name] !== undefined);
  if (proxied === undefined) return null;
  return { status: 403, text: `This port is only for programs on this machine, not for a proxy (${proxied}).\n` };
}
