import type { RequestListener } from 'node:http';
import { createServer as createSecureServer } from 'node:https';
import { brotliCompressSync, deflateSync, gzipSync } from 'node:zlib';
import { type FastifyInstance, type FastifyReply, type FastifyRequest, fastify } from 'fastify';
import { html } from 'ghtml';
import { isOwnHost } from '../../system/http/host-check.ts';
import { NO_SCHEMAS } from '../../system/http/no-schemas.ts';
import { splitIssuer } from '../oauth/issuers.ts';
import type { InterceptedRequest, Interceptor } from '../options.ts';
import type { EmulatedPortal } from '../portal.ts';
import type { Settings } from '../settings/settings.ts';
import type { TlsCredentials } from '../tls.ts';
import { allowWebPages } from './cors.ts';
import { limitRates } from './rate-limit.ts';
import { attachRequestContext, hasRequestContext, requestContext } from './request-context.ts';
import { logEntry, type RequestLog } from './request-log.ts';
import { STATUS_CODES, sendNotFound } from './routes.ts';

/** Milliseconds of silence allowed before a request has arrived completely, and milliseconds for the TLS handshake. */
const REQUEST_TIMEOUT_MS = 30_000;
const HANDSHAKE_TIMEOUT_MS = 3_000;

/**
 * Creates the server of an origin, without routes. Routes get bodies as text, because most endpoints ignore them.
 * @param issuers whose paths are served as those of the default issuer are
 */
export function createServer(
  portal: EmulatedPortal,
  log: RequestLog,
  tls: TlsCredentials | null,
  issuers: readonly string[] = [],
): FastifyInstance {
  const app: FastifyInstance = fastify({
    bodyLimit: 65_536,
    ...(tls === null ? {} : { serverFactory: (handler: RequestListener) => createTlsServer(tls, handler) }),
    schemaController: NO_SCHEMAS,
    rewriteUrl: ({ url = '/' }) => splitIssuer(url, issuers).url,
    // request-context.ts parses queries as RFC 6749 requires.
    routerOptions: { maxParamLength: 1000, querystringParser: () => ({}) },
    frameworkErrors: (_error: unknown, _request: unknown, reply: FastifyReply) => {
      setCommonHeaders(reply, portal.now());
      reply.code(400).type('application/json');
      void reply.send(
        replacementErrorBody(reply, portal.settings.errorBody, '{"error":"invalid_request"}') || undefined,
      );
    },
  });
  // Not requestTimeout: it works only for servers that listen themselves, see OriginListener.
  app.server.setTimeout(REQUEST_TIMEOUT_MS);
  app.addHook('preHandler', (request, _reply, done) => {
    request.raw.setTimeout(0);
    done();
  });
  app.removeAllContentTypeParsers();
  app.addContentTypeParser('*', { parseAs: 'string' }, (_request, body, done) => done(null, body));
  app.setReplySerializer(serializeJson);
  app.setErrorHandler<{ statusCode?: number }>((error, _request, reply) => {
    // An unreadable media type is a malformed request (RFC 6749, 5.2), not one of an unsupported type.
    const status = error.statusCode === 415 ? 400 : (error.statusCode ?? 500);
    return reply.code(status).send({ error: status < 500 ? 'invalid_request' : 'server_error' });
  });
  app.setNotFoundHandler({}, (_request, reply) => sendNotFound(reply, whereToBegin(portal.issuer())));
  attachRequestContext(app, portal, issuers);
  replaceErrorBodies(app);
  log.attach(app, portal);
  rejectForeignHosts(app, portal.settings.hostNames);
  allowWebPages(app);
  rejectNamelessClients(app);
  limitRates(app);
  app.addHook('onSend', (_request, reply, _payload, done) => {
    portal.save();
    setCommonHeaders(reply, portal.now());
    done();
  });
  attachInterceptor(app, portal.settings.intercept);
  return app;
}

/** What a client needs that has the wrong origin or the wrong path. */
function whereToBegin(issuer: string): string {
  return `no such path here; the issuer is ${issuer}, its metadata are at ${issuer}/.well-known/openid-configuration, its token endpoint is ${issuer}/oauth2/token`;
}

function createTlsServer({ certificate, key }: TlsCredentials, handler: RequestListener) {
  const options = { handshakeTimeout: HANDSHAKE_TIMEOUT_MS, minVersion: 'TLSv1.2', cert: certificate, key } as const;
  return createSecureServer(options, handler);
}

/** Headers of every response: the emulator's date, and that it must not be cached (RFC 6749, 5.1). */
function setCommonHeaders(reply: FastifyReply, now: number): void {
  reply.header('date', new Date(now).toUTCString());
  reply.header('cache-control', 'no-store');
  reply.header('pragma', 'no-cache');
  reply.header('x-content-type-options', 'nosniff');
}

/**
 * Rejects requests for a foreign host name with 421 (RFC 9110, 15.5.20). Otherwise a web page whose own name resolves
 * to the emulator (DNS rebinding) could read the tokens and the log.
 * @param names accepted host names, in lower case; IP addresses are always accepted
 */
function rejectForeignHosts(app: FastifyInstance, names: readonly string[]): void {
  app.addHook('onRequest', async ({ headers }, reply) => {
    if (isOwnHost(headers.host, names)) return;
    const found = headers.host === undefined ? 'none' : JSON.stringify(headers.host.slice(0, 100));
    return reply.code(421).send({
      error: 'invalid_request',
      message: `Host: must be an IP address, localhost or a configured name (found ${found}); add a name with --allowed-host NAME (in the library: allowedHosts)`,
    });
  });
}

/** Rejects requests without `User-Agent` if the setting `requireUserAgent` says so, before the portal sees them. */
function rejectNamelessClients(app: FastifyInstance): void {
  app.addHook('onRequest', async (request, reply) => {
    const { endpoint, portal } = requestContext(request);
    if (endpoint === null || !portal.settings.requireUserAgent || request.headers['user-agent']) return;
    reply.code(403).type('text/html; charset=utf-8');
    return reply.send(statusPage(403));
  });
}

const COMPRESSIONS = { gzip: gzipSync, deflate: deflateSync, br: brotliCompressSync } as const;

/** Compresses responses as the setting `contentEncoding` says. Must be attached last, to compress faulty responses too. */
export function compressResponses(app: FastifyInstance): void {
  app.addHook('onSend', (request, reply, payload, done) => {
    const { endpoint, portal } = hasRequestContext(request) ? requestContext(request) : {};
    const encoding = endpoint === null ? undefined : portal?.settings.contentEncoding;
    const isText = typeof payload === 'string' && payload !== '';
    if (encoding === undefined || encoding === 'none' || !isText) return done(null, payload);
    reply.removeHeader('content-length');
    reply.header('content-encoding', encoding);
    done(null, COMPRESSIONS[encoding](payload));
  });
}

/** Calls the interceptor for every request of an origin except those under `/_emulator/`. */
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
  const { endpoint, client } = requestContext(request);
  const logged = logEntry(request);
  if (endpoint === null || logged === null) return null;
  return { endpoint, client, logged, headers: request.headers, drop: () => request.raw.socket.destroy() };
}

/**
 * JSON with `/` as `\/` and `&` as `\u0026`, as a portal may write it (docs/portal.md, 1). Outside of strings JSON has
 * neither character.
 */
function serializeJson(value: unknown): string {
  const json = JSON.stringify(value);
  return /[/&]/.test(json) ? json.replaceAll('/', '\\/').replaceAll('&', '\\u0026') : json;
}

/** The status of requests for a foreign host name: the emulator rejects them, not the portal (`rejectForeignHosts`). */
const MISDIRECTED_REQUEST = 421;

/**
 * Replaces the portal's JSON error bodies by a web page or nothing, as the setting `errorBody` says. Pages for people,
 * responses under `/_emulator/` and responses to requests for a foreign host name do not change.
 */
function replaceErrorBodies(app: FastifyInstance): void {
  app.addHook('onSend', (request, reply, payload, done) => {
    if (!hasRequestContext(request)) return done();
    const { endpoint, portal } = requestContext(request);
    const isOfPortal = endpoint !== null && reply.statusCode >= 400 && reply.statusCode !== MISDIRECTED_REQUEST;
    const kind = isOfPortal ? portal.settings.errorBody : 'json';
    const isKept = kind === 'json' || !String(reply.getHeader('content-type')).startsWith('application/json');
    done(null, isKept ? payload : replacementErrorBody(reply, kind, payload));
  });
}

/** The error body that replaces this JSON; sets its content type. */
function replacementErrorBody(reply: FastifyReply, kind: Settings['errorBody'], json: unknown): unknown {
  if (kind === 'json') return json;
  reply.removeHeader('content-length');
  if (kind === 'empty') {
    reply.removeHeader('content-type');
    // Not null, because Fastify's hook for HEAD fails with it.
    return '';
  }
  reply.type('text/html; charset=utf-8');
  return statusPage(reply.statusCode);
}

function statusPage(status: number): string {
  const title = `${status} ${STATUS_CODES[status] ?? 'Error'}`;
  return html`<!doctype html>
<html><head><title>${title}</title></head><body><h1>${title}</h1></body></html>
`;
}
