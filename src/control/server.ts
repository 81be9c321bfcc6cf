import { type FastifyInstance, type FastifyReply, fastify } from 'fastify';
import type { Administration } from '../core/administration.ts';
import type { Log } from '../core/log.ts';
import { answerFailures } from './failures.ts';
import type { FailureAnswer } from './messages.ts';
import { servePairingEvents } from './pairing-events.ts';
import { serveAdministration } from './routes.ts';
import { placeSocket } from './socket-file.ts';

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
 * Serves the command line on a Unix socket (mode 0660).
 * @throws Failure `control_socket_taken`, or `config_invalid` where no socket can be made at this path
 */
export async function serveControl(options: ControlServerOptions): Promise<ControlServer> {
  const { path, administration, log, group = 'latchkey-admin' } = options;
  const app: FastifyInstance = fastify({
    bodyLimit: 65_536,
    exposeHeadRoutes: false,
    forceCloseConnections: true,
    // As long as node lets a request's head be: a name that is too long is for the hub to refuse, in its own words.
    routerOptions: { maxParamLength: 16_384 },
    frameworkErrors: (error, _request, reply: FastifyReply) => {
      void reply.code(400).send({ code: 'request_invalid', message: error.message } satisfies FailureAnswer);
    },
  });
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
