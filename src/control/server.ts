import { Readable } from 'node:stream';
import { type FastifyInstance, type FastifyReply, fastify } from 'fastify';
import type { Administration } from '../core/administration.ts';
import { Failure, messageOf } from '../core/failure.ts';
import type { Log } from '../core/log.ts';
import type { PairingStatus } from '../core/pairings/pairing-administration.ts';
import { publicReason } from '../core/reports/pairing-failure.ts';
import { NO_SCHEMAS } from '../system/http/no-schemas.ts';
import { version } from '../system/version.ts';
import { sendFailure, setErrorHandlers } from './failures.ts';
import { toWire } from './messages.ts';
import { serveRoutes } from './route-handlers.ts';
import { pairingEventsRoute, VERSION_HEADER } from './routes.ts';
import { listenOnSocketFile } from './socket-file.ts';

/** The most connections: a client that follows a pairing keeps its connection as long as the pairing lasts. */
const MAX_CONNECTIONS = 100;
/** Timeouts in ms for the head of a request and for the whole request; Node checks them once per interval. */
const TIMEOUTS = { headersTimeout: 10_000, connectionsCheckingInterval: 30_000 };
const REQUEST_TIMEOUT = 300_000;

/** Options of {@link startControlServer}. */
export interface ControlServerOptions {
  /** The path of the socket. Its directory is created if it is missing, with access for this user only. */
  readonly path: string;
  readonly administration: Administration;
  readonly log: Log;
  /** The group that may use the socket besides its owner, if the machine has it. Default: `latchkey-admin`. */
  readonly group?: string;
}

/** The listening control socket. Disposing of it ends open event streams and removes the socket. */
export interface ControlServer extends AsyncDisposable {
  readonly path: string;
}

/**
 * Serves the command line on a Unix socket: mode 0660 with its group, 0600 without.
 * @throws Failure `control_socket_taken`, or `config_invalid` if no socket can be created at this path
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
    // Node's limit for the head of a request: the hub itself rejects a name that is too long, with a clear message.
    routerOptions: { maxParamLength: 16_384 },
    frameworkErrors: (error, _request, reply: FastifyReply) => {
      sendFailure(reply, new Failure('request_invalid', error.message));
    },
  });
  app.server.maxConnections = MAX_CONNECTIONS;
  app.removeContentTypeParser('text/plain');
  setErrorHandlers(app, log);
  app.addHook('onRequest', async (_request, reply) => {
    reply.header(VERSION_HEADER, version());
  });
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

/**
 * Serves {@link pairingEventsRoute}: the events of a pairing, until it has ended, the client disconnects or the server
 * closes.
 */
function servePairingEvents(app: FastifyInstance, administration: Administration, log: Log): void {
  const closing = new AbortController();
  app.get<{ Params: { id: string } }>(pairingEventsRoute.path, async (request, reply) => {
    const disconnected = new AbortController();
    reply.raw.once('close', () => disconnected.abort());
    const signal = AbortSignal.any([disconnected.signal, closing.signal]);
    const reports = administration.followPairing(request.params.id, signal)[Symbol.asyncIterator]();
    // Wait for the first report before the head of the response is sent, so that an unknown pairing can still be a 404.
    const first = await reports.next();
    const stream = Readable.from(pairingEventLines(first, reports, signal, log));
    stream.once('close', () => void reports.return?.());
    return reply.type('application/x-ndjson').send(stream);
  });

  app.addHook('preClose', async () => closing.abort());
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
      const event = report.event === 'failed' ? { ...report, reason: publicReason(report.reason) } : report;
      yield `${JSON.stringify(toWire(event))}\n`;
    }
  } catch (error) {
    if (signal.aborted) return;
    log.error('pairing_events_failed', { error: messageOf(error) });
    throw error;
  }
}
