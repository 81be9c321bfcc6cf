import type { RequestListener } from 'node:http';
import { createServer as createSecureServer } from 'node:https';
import { type FastifyInstance, type FastifyReply, fastify, type RouteHandlerMethod } from 'fastify';
import { NO_SCHEMAS } from '../../system/no-schemas.ts';
import type { Portal } from '../portal.ts';
import type { Tls } from '../tls.ts';
import { attachInterceptor } from './attach-interceptor.ts';
import type { Endpoint } from './endpoint.ts';
import { errorBody, replaceErrorBodies } from './error-body.ts';
import { refuseForeignNames } from './foreign-names.ts';
import { httpDate } from './http-date.ts';
import { countOverlappingRefreshes } from './overlapping-refreshes.ts';
import { portalJson } from './portal-json.ts';
import { limitRates } from './rate-limit.ts';
import { receiveRequests } from './received.ts';
import type { RequestLog } from './request-log.ts';
import { readTokenRequests } from './token-request.ts';

/** Milliseconds that a client may be silent before its request is here whole, and that it may take to agree on TLS. */
const REQUEST_TIMEOUT = 30_000;
const HANDSHAKE_TIMEOUT = 3_000;

/** One origin's server, without routes. Bodies reach the routes as text: most endpoints ignore theirs. */
export function createServer(portal: Portal, log: RequestLog, tls: Tls | null): FastifyInstance {
  const app: FastifyInstance = fastify({
    bodyLimit: 65_536,
    ...(tls === null ? {} : { serverFactory: (handler: RequestListener) => secureServer(tls, handler) }),
    schemaController: NO_SCHEMAS,
    // Queries are read as RFC 6749 has them, see Received.
    routerOptions: { maxParamLength: 1000, querystringParser: () => ({}) },
    frameworkErrors: (_error: unknown, _request: unknown, reply: FastifyReply) => {
      markAnswer(reply, portal.now());
      reply.code(400).type('application/json');
      void reply.send(errorBody(reply, portal.settings.errorBody, '{"error":"invalid_request"}') || undefined);
    },
  });
  // Not requestTimeout: that is for servers that listen themselves, see OriginListener.
  app.server.setTimeout(REQUEST_TIMEOUT);
  app.addHook('preHandler', (request, _reply, done) => {
    request.raw.setTimeout(0);
    done();
  });
  app.removeAllContentTypeParsers();
  app.addContentTypeParser('*', { parseAs: 'string' }, (_request, body, done) => done(null, body));
  app.setReplySerializer(portalJson);
  app.setErrorHandler<{ statusCode?: number }>((error, _request, reply) => {
    // A media type that can't be read is a malformed request (RFC 6749, 5.2), not one of the wrong type.
    const status = error.statusCode === 415 ? 400 : (error.statusCode ?? 500);
    return reply.code(status).send({ error: status < 500 ? 'invalid_request' : 'server_error' });
  });
  app.setNotFoundHandler({}, (_request, reply) => notFound(reply));
  receiveRequests(app, portal);
  replaceErrorBodies(app);
  log.attach(app, portal);
  refuseForeignNames(app, portal.settings.names);
  limitRates(app);
  readTokenRequests(app);
  countOverlappingRefreshes(app);
  attachInterceptor(app, portal.settings.intercept);
  app.addHook('onSend', (_request, reply, _payload, done) => {
    markAnswer(reply, portal.now());
    done();
  });
  return app;
}

function secureServer({ certificate, key }: Tls, handler: RequestListener) {
  const options = { handshakeTimeout: HANDSHAKE_TIMEOUT, minVersion: 'TLSv1.2', cert: certificate, key } as const;
  return createSecureServer(options, handler);
}

/** Serves a path; other methods than those given are answered 405 with `Allow` (RFC 9110, 15.5.6). */
export function serve(
  app: FastifyInstance,
  path: string,
  endpoint: Endpoint | null,
  handlers: {
    readonly GET?: RouteHandlerMethod;
    readonly POST?: RouteHandlerMethod;
    readonly PATCH?: RouteHandlerMethod;
    readonly DELETE?: RouteHandlerMethod;
  },
): void {
  const config = endpoint === null ? {} : { endpoint };
  const { GET, POST, PATCH, DELETE } = handlers;
  if (GET !== undefined) app.get(path, { config }, GET);
  if (POST !== undefined) app.post(path, { config }, POST);
  if (PATCH !== undefined) app.patch(path, { config }, PATCH);
  if (DELETE !== undefined) app.delete(path, { config }, DELETE);
  const allowed = [
    ...(GET === undefined ? [] : ['GET', 'HEAD']),
    ...(POST === undefined ? [] : ['POST']),
    ...(PATCH === undefined ? [] : ['PATCH']),
    ...(DELETE === undefined ? [] : ['DELETE']),
  ];
  app.route({
    method: app.supportedMethods.filter((method) => !allowed.includes(method)),
    url: path,
    config,
    handler: (_request, reply) =>
      reply.code(405).header('allow', allowed.join(', ')).send({ error: 'invalid_request' }),
  });
}

/** The one 404 of the portal: it tells nobody why. */
export function notFound(reply: FastifyReply): FastifyReply {
  return reply.code(404).send({ error: 'not_found' });
}

/** What every answer carries: the emulator's date, and that it is nobody's to keep (RFC 6749, 5.1). */
function markAnswer(reply: FastifyReply, now: number): void {
  reply.header('date', httpDate(now));
  reply.header('cache-control', 'no-store');
  reply.header('pragma', 'no-cache');
  reply.header('x-content-type-options', 'nosniff');
}
