import type { FastifyInstance, FastifyRequest } from 'fastify';
import type { EmulatedPortal } from '../portal.ts';
import type { Endpoint } from './logged-request.ts';
import { basicCredentials, formBody, parseParameters, pathParameter, rawQuery } from './request-form.ts';

/** The parameters of a query or a form, or null where one is repeated (RFC 6749, 3.1 and 3.2). */
type Parameters = ReadonlyMap<string, string> | null;

/** What came with a request. */
export interface RequestContext {
  /** The endpoint that it is for, or null for the emulator's own paths. */
  readonly endpoint: Endpoint | null;
  /** The portal with the settings that the request began with: a change in between doesn't touch it. */
  readonly portal: EmulatedPortal;
  readonly method: string;
  /** Path and query. */
  readonly url: string;
  /** The pattern of the path, or undefined where nothing is served. */
  readonly route: string | undefined;
  /** The `{client_id}` of the path, where the route has one. */
  readonly pathClientId: string | undefined;
  /** The Authorization header. */
  readonly authorization: string | undefined;
  readonly query: Parameters;
  /** The form in the body; empty where the body is no form or is not here yet. */
  form: Parameters;
  /** The registered client that is named in path, query, form or Basic header; null where there is none. */
  readonly client: string | null;
}

function createRequestContext(request: FastifyRequest, portal: EmulatedPortal): RequestContext {
  const { url: route, config } = request.routeOptions;
  return {
    endpoint: route === undefined ? 'unknown' : (config.endpoint ?? null),
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
        basicCredentials(this.authorization ?? '')?.id;
      return named !== undefined && portal.settings.clients.has(named) ? named : null;
    },
  };
}

/** Lets {@link requestContext} say of every request of an origin what came with it. */
export function attachRequestContext(app: FastifyInstance, portal: EmulatedPortal): void {
  let current = { ...portal };
  app.decorateRequest('received', null);
  app.addHook('onRequest', (request, _reply, done) => {
    if (current.settings !== portal.settings) current = { ...portal };
    request.setDecorator('received', createRequestContext(request, current));
    done();
  });
  app.addHook('preHandler', (request, _reply, done) => {
    requestContext(request).form = parseParameters(formBody(request));
    done();
  });
}

/**
 * Whether {@link requestContext} can say something: a request with the method that HTTP/2 begins with (`PRI`) gets Fastify's
 * last resort, which runs the hooks of an answer and none before.
 */
export function hasRequestContext(request: FastifyRequest): boolean {
  return 'received' in request;
}

/** What came with a request. */
export function requestContext(request: FastifyRequest): RequestContext {
  return request.getDecorator<RequestContext>('received');
}
