import { type FastifyInstance, type FastifyReply, fastify } from 'fastify';
import type { Administration } from '../core/administration.ts';
import { Failure } from '../core/failure.ts';
import type { Log } from '../core/log.ts';
import { limitInFlightRequests } from '../system/http/in-flight-requests.ts';
import { NO_SCHEMAS } from '../system/http/no-schemas.ts';
import { serveAdministration } from './administration.ts';
import { answerFailures, refuse } from './failures.ts';
import { servePairingEvents } from './pairing-events.ts';
import { placeSocket } from './socket-file.ts';

/** Bounds for clients of the socket: each follower of a pairing holds a connection as long as the pairing lasts. */
const MAX_CONNECTIONS = 100;
/** Requests that are worked on at a time. */
const MAX_IN_FLIGHT = { perConnection: 32, total: 250 };
/** ms for a request's head, and for all of it; they are looked at once an interval. */
const TIMEOUTS = { headersTimeout: 10_000, connectionsCheckingInterval: 30_000 };
const REQUEST_TIMEOUT = 300_000;

/** What {@link serveControl} takes. */
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
export async function serveControl(options: ControlServerOptions): Promise<ControlServer> {
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
      refuse(reply, new Failure('request_invalid', error.message));
    },
  });
  app.server.maxConnections = MAX_CONNECTIONS;
  limitInFlightRequests(app.server, MAX_IN_FLIGHT);
  app.removeContentTypeParser('text/plain');
  answerFailures(app, log);
  serveAdministration(app, administration);
  servePairingEvents(app, administration, log);
  try {
    const file = await placeSocket(path, group, log, (temporary) => app.listen({ path: temporary }));
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
