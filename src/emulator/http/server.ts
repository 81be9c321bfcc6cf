import type { RequestListener } from 'node:http';
import { createServer as createSecureServer } from 'node:https';
import { type FastifyInstance, type FastifyReply, type FastifyRequest, fastify } from 'fastify';
import { html } from 'ghtml';
import { isOwnHost } from '../../system/http/host-check.ts';
import { NO_SCHEMAS } from '../../system/http/no-schemas.ts';
import type { EmulatedPortal } from '../portal.ts';
import type { InterceptedRequest, Interceptor } from '../settings/options.ts';
import type { Settings } from '../settings/settings.ts';
import type { TlsCredentials } from '../tls.ts';
import type { RateLimiter } from './rate-limit.ts';
import { attachRequestContext, hasRequestContext, requestContext } from './request-context.ts';
import type { RequestLog } from './request-log.ts';
import { STATUS_CODES, sendNotFound } from './routes.ts';
import { attachTokenRequestCredentials } from './token-request.ts';

/** Milliseconds that a client may be silent before its request is here whole, and that it may take to agree on TLS. */
const REQUEST_TIMEOUT_MS = 30_000;
const HANDSHAKE_TIMEOUT_MS = 3_000;

/** One origin's server, without routes. Bodies reach the routes as text: most endpoints ignore theirs. */
export function createServer(
  portal: EmulatedPortal,
  log: RequestLog,
  rates: RateLimiter,
  tls: TlsCredentials | null,
): FastifyInstance {
  const app: FastifyInstance = fastify({
    bodyLimit: 65_536,
    ...(tls === null ? {} : { serverFactory: (handler: RequestListener) => createTlsServer(tls, handler) }),
    schemaController: NO_SCHEMAS,
    // Queries are read as RFC 6749 has them, see Received.
    routerOptions: { maxParamLength: 1000, querystringParser: () => ({}) },
    frameworkErrors: (_error: unknown, _request: unknown, reply: FastifyReply) => {
      setCommonHeaders(reply, portal.now());
      reply.code(400).type('application/json');
      void reply.send(
        replacementErrorBody(reply, portal.settings.errorBody, '{"error":"invalid_request"}') || undefined,
      );
    },
  });
  // Not requestTimeout: that is for servers that listen themselves, see OriginListener.
  app.server.setTimeout(REQUEST_TIMEOUT_MS);
  app.addHook('preHandler', (request, _reply, done) => {
    request.raw.setTimeout(0);
    done();
  });
  app.removeAllContentTypeParsers();
  app.addContentTypeParser('*', { parseAs: 'string' }, (_request, body, done) => done(null, body));
  app.setReplySerializer(serializeJson);
  app.setErrorHandler<{ statusCode?: number }>((error, _request, reply) => {
    // A media type that can't be read is a malformed request (RFC 6749, 5.2), not one of the wrong type.
    const status = error.statusCode === 415 ? 400 : (error.statusCode ?? 500);
    return reply.code(status).send({ error: status < 500 ? 'invalid_request' : 'server_error' });
  });
  app.setNotFoundHandler({}, (_request, reply) => sendNotFound(reply));
  attachRequestContext(app, portal);
  replaceErrorBodies(app);
  log.attach(app, portal);
  rejectForeignHosts(app, portal.settings.hostNames);
  rates.attach(app);
  attachTokenRequestCredentials(app);
  app.addHook('onSend', (_request, reply, _payload, done) => {
    portal.save();
    setCommonHeaders(reply, portal.now());
    done();
  });
  attachInterceptor(app, portal.settings.intercept);
  return app;
}

function createTlsServer({ certificate, key }: TlsCredentials, handler: RequestListener) {
  const options = { handshakeTimeout: HANDSHAKE_TIMEOUT_MS, minVersion: 'TLSv1.2', cert: certificate, key } as const;
  return createSecureServer(options, handler);
}

/** What every answer carries: the emulator's date, and that it is nobody's to keep (RFC 6749, 5.1). */
function setCommonHeaders(reply: FastifyReply, now: number): void {
  reply.header('date', new Date(now).toUTCString());
  reply.header('cache-control', 'no-store');
  reply.header('pragma', 'no-cache');
  reply.header('x-content-type-options', 'nosniff');
}

/**
 * Refuses requests that were meant for another host, with 421 (RFC 9110, 15.5.20): a web page can make a name of its own point
 * to the emulator (DNS rebinding), and would read the tokens and the log of whoever has it open.
 * @param names that requests may be for, in lower case; IP addresses are accepted
 */
function rejectForeignHosts(app: FastifyInstance, names: readonly string[]): void {
  app.addHook('onRequest', async ({ headers }, reply) => {
    if (isOwnHost(headers.host, names)) return;
    const found = headers.host === undefined ? 'none' : JSON.stringify(headers.host.slice(0, 100));
    return reply.code(421).send({
      error: 'invalid_request',
      message: `Host: found ${found}; allowed are IP addresses, localhost and names that the emulator was started with: --allowed-host NAME (in the library allowedHosts)`,
    });
  });
}

/** Lets the interceptor see every request of an origin except those under `/_emulator/`. */
function attachInterceptor(app: FastifyInstance, interceptor: Interceptor): void {
  if (interceptor.received !== undefined) {
    app.addHook('preHandler', async (request, reply) => {
      const exchange = interceptedRequest(request);
      if (exchange === null) return;
      await interceptor.received?.(exchange);
      if (request.raw.socket.destroyed) reply.hijack();
    });
  }
  if (interceptor.answering !== undefined) {
    app.addHook('onSend', async (request, reply) => {
      const exchange = interceptedRequest(request);
      if (exchange !== null) await interceptor.answering?.(exchange, reply.statusCode);
    });
  }
}

function interceptedRequest(request: FastifyRequest): InterceptedRequest | null {
  const came = requestContext(request);
  if (came.endpoint === null) return null;
  return { endpoint: came.endpoint, client: came.client, drop: () => request.raw.socket.destroy() };
}

/**
 * JSON as the portal writes it: `/` as `\/` and `&` as `\u0026` (specification, "OAuth2 helper configuration").
 * Outside of strings JSON has neither character.
 */
function serializeJson(value: unknown): string {
  const json = JSON.stringify(value);
  return /[/&]/.test(json) ? json.replaceAll('/', '\\/').replaceAll('&', '\\u0026') : json;
}

/** It is the emulator that refuses another host's name, see `rejectForeignHosts`. */
const MISDIRECTED_REQUEST = 421;

/**
 * Puts a web page or nothing in the place of the portal's JSON error bodies, where `replacementErrorBody` says so. The pages that
 * people see stay, and so do the answers under `/_emulator/` and to requests for another host.
 */
function replaceErrorBodies(app: FastifyInstance): void {
  app.addHook('onSend', (request, reply, payload, done) => {
    if (!hasRequestContext(request)) return done();
    const { endpoint, portal } = requestContext(request);
    const isOfPortal = endpoint !== null && reply.statusCode >= 400 && reply.statusCode !== MISDIRECTED_REQUEST;
    const kind = isOfPortal ? portal.settings.errorBody : 'json';
    const json = kind === 'json' || !String(reply.getHeader('content-type')).startsWith('application/json');
    done(null, json ? payload : replacementErrorBody(reply, kind, payload));
  });
}

/** The body to send for an error instead of this JSON; sets its content type. */
function replacementErrorBody(reply: FastifyReply, kind: Settings['errorBody'], json: unknown): unknown {
  if (kind === 'json') return json;
  reply.removeHeader('content-length');
  if (kind === 'empty') {
    reply.removeHeader('content-type');
    // Not null: Fastify's own hook for HEAD fails at that.
    return '';
  }
  reply.type('text/html; charset=utf-8');
  const title = `${reply.statusCode} ${STATUS_CODES[reply.statusCode] ?? 'Error'}`;
  return html`<!doctype html>
<html><head><title>${title}</title></head><body><h1>${title}</h1></body></html>
`;
}
