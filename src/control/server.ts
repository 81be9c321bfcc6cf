import { once } from 'node:events';
import { Readable } from 'node:stream';
import { type FastifyInstance, type FastifyReply, fastify } from 'fastify';
import type { Administration } from '../core/administration.ts';
import { Failure, messageOf } from '../core/failure.ts';
import type { Log } from '../core/log.ts';
import type { PairingStatus } from '../core/pairings/pairing-administration.ts';
import { publicReason } from '../core/reports/pairing-failure.ts';
import { limitInFlightRequests } from '../system/http/in-flight-requests.ts';
import { NO_SCHEMAS } from '../system/http/no-schemas.ts';
import { sendFailure, setErrorHandlers } from './failures.ts';
import { serveRoutes, toWire } from './route-handlers.ts';
import { pairingEventsRoute } from './routes.ts';
import { listenOnSocketFile } from './socket-file.ts';

/** Bounds for clients of the socket: each follower of a pairing holds a connection as long as the pairing lasts. */
const MAX_CONNECTIONS = 100;
/** Requests that are worked on at a time. */
const MAX_IN_FLIGHT = { perConnection: 32, total: 250 };
/** ms for a request's head, and for all of it; they are looked at once an interval. */
const TIMEOUTS = { headersTimeout: 10_000, connectionsCheckingInterval: 30_000 };
const REQUEST_TIMEOUT = 300_000;

/** What {@link startControlServer} takes. */
export interface ControlServerOptions {
  /** Where the socket is to be. Its directory is made, for this user alone, where it is missing. */
  readonly path: string;
  readonly administration: Administration;
  readonly log: Log;
  /** Who may use the socket beside its owner, where there is such a group. Default: `latchkey-admin`. */
  readonly group?: string;
}

/** The control socket at work; disposing of it ends open event streams and removes the socket. */
export interface ControlServer extends AsyncDisposable {
  readonly path: string;
}

/**
 * Serves the command line on a Unix socket: mode 0660 with its group, 0600 without.
 * @throws Failure `control_socket_taken`, or `config_invalid` where no socket can be made at this path
 */
export async function startControlServer(options: ControlServerOptions): Promise<ControlServer> {
  const { path, administration, log, group = 'latchkey-admin' } = options;
  const app: FastifyInstance = fastify({
    bodyLimit: 65_536,
    http: TIMEOUTS,
    requestTimeout: REQUEST_TIMEOUT,
    exposeHeadRoutes: false,
    forceCloseConnections: true,
    schemaController: NO_SCHEMAS,
    // As long as node lets a request's head be: a name that is too long is for the hub to refuse, in its own words.
    routerOptions: { maxParamLength: 16_384 },
    frameworkErrors: (error, _request, reply: FastifyReply) => {
      sendFailure(reply, new Failure('request_invalid', error.message));
    },
  });
  app.server.maxConnections = MAX_CONNECTIONS;
  limitInFlightRequests(app.server, MAX_IN_FLIGHT);
  app.removeContentTypeParser('text/plain');
  setErrorHandlers(app, log);
  serveRoutes(app, administration);
  servePairingEvents(app, administration, log);
  try {
    const file = await listenOnSocketFile(path, group, log, (temporary) => app.listen({ path: temporary }));
    return {
      path,
      async [Symbol.asyncDispose]() {
        await file.remove();
        await app.close();
      },
    };
  } catch (error) {
    await app.close();
    throw error;
  }
}

/** Serves {@link pairingEventsRoute}: a pairing's reports, until it has ended, the client has gone or the server closes. */
function servePairingEvents(app: FastifyInstance, administration: Administration, log: Log): void {
  const closing = new AbortController();
  const streams = new Set<Readable>();

  app.get<{ Params: { id: string } }>(pairingEventsRoute.path, async (request, reply) => {
    const gone = new AbortController();
    reply.raw.once('close', () => gone.abort());
    const signal = AbortSignal.any([gone.signal, closing.signal]);
    const reports = administration.followPairing(request.params.id, signal)[Symbol.asyncIterator]();
    // The first report comes before the head of the answer, so that an unknown pairing can still be a 404.
    const first = await reports.next();
    const stream = Readable.from(pairingEventLines(first, reports, signal, log));
    streams.add(stream);
    stream.once('close', () => {
      streams.delete(stream);
      void reports.return?.();
    });
    return reply.type('application/x-ndjson').send(stream);
  });

  app.addHook('preClose', async () => {
    closing.abort();
    await Promise.all([...streams].map((stream) => once(stream, 'close')));
  });
}

async function* pairingEventLines(
  first: IteratorResult<PairingStatus>,
  reports: AsyncIterator<PairingStatus>,
  signal: AbortSignal,
  log: Log,
): AsyncGenerator<string> {
  try {
    for (let next = first; next.done !== true; next = await reports.next()) {
      const report = next.value;
      const told = report.event === 'failed' ? { ...report, reason: publicReason(report.reason) } : report;
      yield `${JSON.stringify(toWire(told))}\n`;
    }
  } catch (error) {
    if (signal.aborted) return;
    log.error('pairing_events_failed', { error: messageOf(error) });
    throw error;
  }
}
