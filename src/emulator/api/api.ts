import type { FastifyInstance, FastifyRequest, RouteHandlerMethod } from 'fastify';
import { consoleOperations } from '../console/console.ts';
import { FaultError } from '../faults/fault-body.ts';
import { addRoute, badRequest, sendNotFound } from '../http/routes.ts';
import { LoginError } from '../oauth/login.ts';
import { ClockError } from '../virtual-clock.ts';
import { controlOperations } from './control.ts';
import { eventsOperation } from './events.ts';
import { inspectionOperations } from './inspection.ts';
import type { ApiContext, ApiOperation } from './operation.ts';

/** Everything under `/_emulator/`. */
export const apiOperations: readonly ApiOperation[] = [
  ...controlOperations,
  ...inspectionOperations,
  eventsOperation,
  ...consoleOperations,
];

/** Serves the emulator's own API and its console. */
export function serveApi(app: FastifyInstance, api: ApiContext): void {
  rejectCrossOriginRequests(app);
  for (const [path, own] of Map.groupBy(apiOperations, (operation) => operation.path)) {
    const handlers = own.map((operation) => [operation.method.toUpperCase(), createHandler(operation, api)]);
    addRoute(app, path.replaceAll(/\{(\w+)\}/g, ':$1'), null, Object.fromEntries(handlers));
  }
}

/** Errors that say of a request what is wrong with it. */
const BAD_REQUEST_ERRORS = [LoginError, ClockError, FaultError];

function createHandler({ handle }: ApiOperation, api: ApiContext): RouteHandlerMethod {
  return async (request, reply) => {
    try {
      const body = await handle(api, request, reply);
      if (reply.sent) return;
      return body === null ? sendNotFound(reply) : reply.send(body);
    } catch (error) {
      if (!BAD_REQUEST_ERRORS.some((refusing) => error instanceof refusing)) throw error;
      return reply.send(badRequest(reply, error instanceof Error ? error.message : ''));
    }
  };
}

/**
 * Keeps web pages of other origins from changing anything through the emulator's API: a browser says where a request comes
 * from (Fetch Metadata, `RequestOrigin`), and these are refused with 403. Clients that are no browsers send neither header and are
 * let through. Pages that point a name of their own at the emulator are refused before (`rejectForeignHosts`).
 */
function rejectCrossOriginRequests(app: FastifyInstance): void {
  app.addHook('onRequest', async (request, reply) => {
    if (request.method === 'GET' || request.method === 'HEAD') return;
    if (request.routeOptions.url?.startsWith('/_emulator/') !== true || !isCrossOrigin(request)) return;
    return reply.code(403).send({
      error: 'invalid_request',
      message: 'origin: found a page of another origin; allowed are the console and clients that are no browsers',
    });
  });
}

function isCrossOrigin({ headers }: FastifyRequest): boolean {
  const site = headers['sec-fetch-site'];
  if (site !== undefined && site !== 'same-origin' && site !== 'none') return true;
  const origin = headers.origin;
  return origin !== undefined && origin.replace(/^https?:\/\//, '') !== headers.host;
}
