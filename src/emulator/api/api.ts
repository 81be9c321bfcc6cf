import type { FastifyInstance, FastifyRequest, RouteHandlerMethod } from 'fastify';
import { FaultError } from '../faults/fault-body.ts';
import { addRoute, badRequest, sendNotFound } from '../http/routes.ts';
import { snakeCase } from '../json.ts';
import { LoginError } from '../oauth/login.ts';
import { ClockError } from '../virtual-clock.ts';
import { controlOperations } from './control.ts';
import { eventsOperation, inspectionOperations } from './inspection.ts';
import type { ApiContext, ApiOperation } from './operation.ts';

/** The operations of the emulator's API. */
export const apiOperations: readonly ApiOperation[] = [...controlOperations, ...inspectionOperations, eventsOperation];

/** Serves operations under `/_emulator/`. */
export function serveApi(app: FastifyInstance, all: readonly ApiOperation[], api: ApiContext): void {
  rejectCrossOriginRequests(app);
  for (const [path, operations] of Map.groupBy(all, (operation) => operation.path)) {
    const handlers = operations.map((operation) => [operation.method.toUpperCase(), createHandler(operation, api)]);
    addRoute(app, path.replaceAll(/\{(\w+)\}/g, ':$1'), null, Object.fromEntries(handlers));
  }
}

/** Errors that describe an invalid request, and name its member as the library does. */
const BAD_REQUEST_ERRORS = [LoginError, ClockError, FaultError];

function createHandler({ handle }: ApiOperation, api: ApiContext): RouteHandlerMethod {
  return async (request, reply) => {
    try {
      const body = await handle(api, request, reply);
      if (reply.sent) return;
      return body === null ? sendNotFound(reply) : reply.send(body);
    } catch (error) {
      if (!BAD_REQUEST_ERRORS.some((type) => error instanceof type)) throw error;
      const message = error instanceof Error ? error.message : '';
      return reply.send(badRequest(reply, message.replace(/^\w+(?=:)/, snakeCase)));
    }
  };
}

/**
 * Rejects changes through the emulator's API by web pages of other origins, with 403. Browsers send the origin of a
 * request (Fetch Metadata, `Origin`); other programs send neither header and are accepted. `rejectForeignHosts` has
 * already rejected pages whose own host name resolves to the emulator.
 */
function rejectCrossOriginRequests(app: FastifyInstance): void {
  app.addHook('onRequest', async (request, reply) => {
    if (request.method === 'GET' || request.method === 'HEAD') return;
    if (request.routeOptions.url?.startsWith('/_emulator/') !== true || !isCrossOrigin(request)) return;
    return reply.code(403).send({
      error: 'invalid_request',
      message: 'origin: must be the console or a program other than a browser (found a web page of another origin)',
    });
  });
}

function isCrossOrigin({ headers }: FastifyRequest): boolean {
  const site = headers['sec-fetch-site'];
  if (site !== undefined && site !== 'same-origin' && site !== 'none') return true;
  const origin = headers.origin;
  return origin !== undefined && origin.replace(/^https?:\/\//, '') !== headers.host;
}
