import type { FastifyInstance, FastifyRequest } from 'fastify';
import { FORM_MEDIA_TYPE, mediaTypeOf } from '../../system/http/form.ts';
import { parseParameters } from '../oauth/authorization-request.ts';
import { forIssuer, splitIssuer } from '../oauth/issuers.ts';
import { unverifiedClaim } from '../oauth/jwt.ts';
import type { EmulatedPortal } from '../portal.ts';
import type { Endpoint } from './logged-request.ts';

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
  /** Path and query, as those of the default issuer. */
  readonly url: string;
  /** Path and query as they were sent. */
  readonly sentUrl: string;
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
    sentUrl: request.originalUrl,
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
        unverifiedClaim(this.form?.get('client_assertion') ?? '', 'sub');
      return named !== null && portal.settings.clients.has(named) ? named : null;
    },
  };
}

/** Makes {@link requestContext} available for all requests of an origin. @param issuers the names of those beside the default one */
export function attachRequestContext(app: FastifyInstance, portal: EmulatedPortal, issuers: readonly string[]): void {
  const views = new Map<string | null, EmulatedPortal>();
  app.decorateRequest('received', null);
  app.addHook('onRequest', (request, _reply, done) => {
    const { issuer } = splitIssuer(request.originalUrl, issuers);
    // Copied when the state changes and not for each request, which costs a tenth of its time.
    let view = views.get(issuer);
    if (view?.settings !== portal.settings || view.tokens !== portal.tokens) {
      view = forIssuer(portal, issuer);
      views.set(issuer, view);
    }
    request.setDecorator('received', createRequestContext(request, view));
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

/** The query of a URL as it was sent, without the question mark. */
export function rawQuery(url: string): string {
  const start = url.indexOf('?');
  return start === -1 ? '' : url.slice(start + 1);
}

/** A request's body as text; empty if there is none. */
export function bodyText(request: FastifyRequest): string {
  return typeof request.body === 'string' ? request.body : '';
}

/** The media type of a request's body in lower case, without its parameters; empty if there is none. */
export function mediaType(request: FastifyRequest): string {
  return mediaTypeOf(request.headers['content-type']);
}

/** The form in a request's body as text; empty if the body is not a form. */
function formBody(request: FastifyRequest): string {
  return mediaType(request) === FORM_MEDIA_TYPE ? bodyText(request) : '';
}

/** A client's credentials (RFC 6749, 2.3.1). */
export interface BasicCredentials {
  readonly id: string;
  readonly secret: string;
}

/**
 * The credentials of an HTTP Basic header: form-encoded ID and secret, then Base64 (RFC 6749, 2.3.1).
 * @returns null if the header is malformed or has another scheme
 */
export function basicCredentials(header: string): BasicCredentials | null {
  const encoded = /^basic +([A-Za-z0-9+/]+={0,2}) *$/i.exec(header)?.[1];
  if (encoded === undefined) return null;
  const pair = Buffer.from(encoded, 'base64').toString('utf8');
  const colon = pair.indexOf(':');
  if (colon === -1) return null;
  try {
    return { id: decodeFormComponent(pair.slice(0, colon)), secret: decodeFormComponent(pair.slice(colon + 1)) };
  } catch {
    return null;
  }
}

/** The token of a Bearer header (RFC 6750, 2.1), or null if the header is malformed or has another scheme. */
export function bearerToken(header: string): string | null {
  const access = accessToken(header);
  return access?.scheme === 'bearer' ? access.token : null;
}

/** The token of a Bearer header or a DPoP header (RFC 9449, 7.1), or null if the header is another or malformed. */
export function accessToken(header: string): { readonly scheme: 'bearer' | 'dpop'; readonly token: string } | null {
  const [, scheme, token] = /^(bearer|dpop) +([\w.~+/-]+=*) *$/i.exec(header) ?? [];
  return token === undefined ? null : { scheme: /^b/i.test(scheme ?? '') ? 'bearer' : 'dpop', token };
}

/** A parameter of the path, if the route has it. */
export function pathParameter(request: FastifyRequest, name: string): string | undefined {
  return (request.params as Readonly<Record<string, string>>)[name];
}

function decodeFormComponent(text: string): string {
  return decodeURIComponent(text.replaceAll('+', ' '));
}
