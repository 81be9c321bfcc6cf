import type { IncomingMessage, RequestListener } from 'node:http';
import fastify, { type FastifyInstance, type FastifyReply, type FastifyRequest } from 'fastify';
import { messageOf } from '../core/failure.ts';
import type { Log } from '../core/log.ts';
import { NO_SCHEMAS } from '../system/http/no-schemas.ts';
import { BAD_REQUEST_TEXT } from './listener.ts';
import { sendError } from './oauth/errors.ts';
import { METADATA_PATHS } from './oauth/server-metadata.ts';

/** What browsers see if there is no such page. */
export interface NotFoundPage {
  /** @param status 405 if the path exists for other methods */
  sendNotFound(request: FastifyRequest, reply: FastifyReply, status: 404 | 405): FastifyReply;
}

/** Creates an app that responds to errors and to unknown paths; the caller adds the routes. */
export function createHttpApp(pages: NotFoundPage, log: Log): FastifyInstance {
  const app = fastify({
    exposeHeadRoutes: false,
    bodyLimit: 16 * 1024,
    routerOptions: { maxParamLength: 1000 },
    schemaController: NO_SCHEMAS,
    // Fastify calls no hook for requests that it rejects itself, such as a path with "%zz".
    frameworkErrors: ({ statusCode = 400 }, _request, reply) => {
      reply.raw.writeHead(statusCode, { 'content-type': 'text/plain; charset=utf-8' }).end(`${BAD_REQUEST_TEXT}\n`);
    },
  });
  app.setErrorHandler((error, request, reply) => {
    const status = errorStatus(error);
    // The error may be that one of these headers can't be sent: if it stayed, Fastify would send its own response.
    for (const name of Object.keys(reply.getHeaders())) reply.removeHeader(name);
    // The rest of a rejected body is not read, however long it is.
    if (!request.raw.complete) reply.header('connection', 'close');
    if (status >= 500) log.error('request_failed', { error: messageOf(error) });
    return reply
      .code(status)
      .type('text/plain; charset=utf-8')
      .send(status >= 500 ? "Internal error; see the hub's log.\n" : `${BAD_REQUEST_TEXT}\n`);
  });
  app.setNotFoundHandler((request, reply) => {
    const allowed = ['GET', 'HEAD', 'POST'].filter(
      (method) => app.findRoute({ url: request.url.split('?')[0] ?? '', method }) !== null,
    );
    if (allowed.length === 0) return sendNotFound(pages, request, reply);
    const methods = allowed.join(', ');
    reply.header('allow', methods);
    // A person has opened the address of a form again.
    if (request.method === 'GET' && isFromBrowser(request)) return pages.sendNotFound(request, reply, 405);
    return sendError(
      reply,
      'invalid_request',
      `this address does not accept ${request.method}: use ${methods}`,
      {},
      405,
    );
  });
  return app;
}

/** Sends the page for people, or an error for programs, that there is nothing at this address. */
export function sendNotFound(pages: NotFoundPage, request: FastifyRequest, reply: FastifyReply): FastifyReply {
  if (isFromBrowser(request)) return pages.sendNotFound(request, reply, 404);
  const description = `there is nothing at this address: ${METADATA_PATHS[0]} has those of the endpoints`;
  return sendError(reply, 'invalid_request', description, {}, 404);
}

function isFromBrowser({ headers }: FastifyRequest): boolean {
  return headers.accept?.includes('text/html') === true;
}

/** The response to a request that is not meant for the hub. */
export interface Rejection {
  readonly status: number;
  readonly text: string;
}

/**
 * Serves only the requests that are well-formed and meant for the hub.
 * @param rejection returns the response to any other; null for one that is meant for the hub
 */
export function servePermitted(
  rejection: (request: IncomingMessage) => Rejection | null,
  serve: RequestListener,
): RequestListener {
  return (request, response) => {
    const rejected = isWellFormed(request) ? rejection(request) : { status: 400, text: BAD_REQUEST_TEXT };
    if (rejected === null) serve(request, response);
    else response.writeHead(rejected.status, { 'content-type': 'text/plain; charset=utf-8' }).end(rejected.text);
  };
}

/** Whether a request has exactly one Host header, and no absolute URL, which would override it (RFC 9112, 3.2). */
function isWellFormed({ rawHeaders, url }: IncomingMessage): boolean {
  // Names and values alternate.
  const hosts = rawHeaders.filter((name, index) => index % 2 === 0 && name.toLowerCase() === 'host');
  return hosts.length <= 1 && url?.startsWith('/') === true;
}

/** The HTTP status for an uncaught error. */
function errorStatus(error: unknown): number {
  const status = error instanceof Error && 'statusCode' in error ? error.statusCode : undefined;
  return typeof status === 'number' && Number.isInteger(status) && status >= 400 && status <= 599 ? status : 500;
}
