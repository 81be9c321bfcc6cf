import type { FastifyInstance, FastifyRequest } from 'fastify';
import type { EmulatedPortal } from '../portal.ts';
import type { Endpoint } from './logged-request.ts';
import { basicCredentials, formBody, parseParameters, pathParameter, rawQuery } from './request-form.ts';

/** The parameters of a query or a form; null if one is repeated (RFC 6749, 3.1 and 3.2). */
type Parameters = ReadonlyMap<string, string> | null;

/** A request with its parsed parameters, and the portal that it is for. */
export interface RequestContext {
  /** The portal endpoint, or null for paths under `/_emulator/`. */
  readonly endpoint: Endpoint | null;
  /** Whether the endpoint is one of the generic OAuth 2.0 server. */
  readonly oauth2: boolean;
  /** The portal with the settings at the start of the request: later changes do not affect it. */
  readonly portal: EmulatedPortal;
  readonly method: string;
  /** Path and query. */
  readonly url: string;
  /** The pattern of the path, or undefined if there is no route. */
  readonly route: string | undefined;
  /** The `{client_id}` of the path, if the route has one. */
  readonly pathClientId: string | undefined;
  /** The Authorization header. */
  readonly authorization: string | undefined;
  readonly query: Parameters;
  /** The form in the body; empty if the body is not a form or has not arrived yet. */
  form: Parameters;
  /** The registered client named in the path, query, form, Basic header or client assertion; null if there is none. */
  readonly client: string | null;
}

function createRequestContext(request: FastifyRequest, portal: EmulatedPortal): RequestContext {
  const { url: route, config } = request.routeOptions;
  return {
    endpoint: route === undefined ? 'unknown' : (config.endpoint ?? null),
    oauth2: config.oauth2 === true,
    portal,
    method: request.method,
    url: request.url,
    route,
    pathClientId: pathParameter(request, 'client_id'),
    authorization: request.headers.authorization,
    query: parseParameters(rawQuery(request.url)),
    form: new Map(),
    get client() {
      const named =
        this.pathClientId ??
        this.query?.get('client_id') ??
        this.form?.get('client_id') ??
        basicCredentials(this.authorization ?? '')?.id ??
        unverifiedSubject(this.form?.get('client_assertion'));
      return named !== undefined && portal.settings.clients.has(named) ? named : null;
    },
  };
}

/** The subject of a JWT, unverified; only for the log and for faults, never for decisions. */
function unverifiedSubject(jwt: string | undefined): string | undefined {
  try {
    const claims: unknown = JSON.parse(Buffer.from(jwt?.split('.')[1] ?? '', 'base64url').toString());
    return typeof claims === 'object' && claims !== null && 'sub' in claims ? String(claims.sub) : undefined;
  } catch {
    return undefined;
  }
}

/** Makes {@link requestContext} available for all requests of an origin. */
export function attachRequestContext(app: FastifyInstance, portal: EmulatedPortal): void {
  let current = { ...portal };
  app.decorateRequest('received', null);
  app.addHook('onRequest', (request, _reply, done) => {
    if (current.settings !== portal.settings) current = { ...portal };
    request.setDecorator('received', createRequestContext(request, current));
    done();
  });
  app.addHook('preHandler', (request, _reply, done) => {
    const context = requestContext(request);
    const { oauth2, endpoint, portal } = context;
    const form = parseParameters(formBody(request));
    const isMerged = oauth2 && endpoint !== 'authorize' && endpoint !== 'device' && portal.settings.parametersInQuery;
    context.form = isMerged ? mergeParameters(context.query, form) : form;
    done();
  });
}

/** The parameters of a query and a form; null if one is repeated. */
function mergeParameters(query: Parameters, form: Parameters): Parameters {
  if (query === null || form === null || [...query.keys()].some((name) => form.has(name))) return null;
  return new Map([...query, ...form]);
}

/**
 * Whether {@link requestContext} is available. It is not for the method `PRI`, with which HTTP/2 connections begin:
 * Fastify handles such a request with a fallback that runs only the hooks of the response.
 */
export function hasRequestContext(request: FastifyRequest): boolean {
  return 'received' in request;
}

/** The context of a request. */
export function requestContext(request: FastifyRequest): RequestContext {
  return request.getDecorator<RequestContext>('received');
}
