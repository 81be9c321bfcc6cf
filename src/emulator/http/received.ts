import type { FastifyInstance, FastifyRequest } from 'fastify';
import type { Portal } from '../portal.ts';
import { type Endpoint, endpointOf } from './endpoint.ts';
import { basicCredentials, formBody, parameters, pathParameter, rawQuery } from './request-form.ts';

/** The parameters of a query or a form, or null where one is repeated (RFC 6749, 3.1 and 3.2). */
type Parameters = ReadonlyMap<string, string> | null;

/** What came with a request. Query and form are read when they are first asked for, and only once. */
export class Received {
  /** The endpoint that it is for, or null for the emulator's own paths. */
  readonly endpoint: Endpoint | null;
  /** The portal with the settings that the request began with: a change in between doesn't touch it. */
  readonly portal: Portal;
  readonly method: string;
  /** Path and query. */
  readonly url: string;
  /** The pattern of the path, or undefined where nothing is served. */
  readonly route: string | undefined;
  /** The `{client_id}` of the path, where the route has one. */
  readonly clientInPath: string | undefined;
  /** The Authorization header. */
  readonly authorization: string | undefined;
  /** The form in the body; empty where the body is no form or is not here yet. */
  #body = '';
  #query: Parameters | undefined;
  #form: Parameters | undefined;

  constructor(request: FastifyRequest, portal: Portal) {
    const { url, config } = request.routeOptions;
    this.endpoint = endpointOf(url, config);
    this.portal = portal;
    this.method = request.method;
    this.url = request.url;
    this.route = url;
    this.clientInPath = pathParameter(request, 'client_id');
    this.authorization = request.headers.authorization;
  }

  /** The body is here whole. */
  take(body: string): void {
    this.#body = body;
    this.#form = undefined;
  }

  get query(): Parameters {
    if (this.#query === undefined) this.#query = parameters(rawQuery(this.url));
    return this.#query;
  }

  get form(): Parameters {
    if (this.#form === undefined) this.#form = parameters(this.#body);
    return this.#form;
  }

  /** The registered client that is named in path, query, form or Basic header; null where there is none. */
  get client(): string | null {
    const named =
      this.clientInPath ??
      this.query?.get('client_id') ??
      this.form?.get('client_id') ??
      basicCredentials(this.authorization ?? '')?.id;
    return named !== undefined && this.portal.settings.clients.has(named) ? named : null;
  }

  /** Characters that it holds on to. */
  get size(): number {
    return this.url.length + this.#body.length + (this.authorization?.length ?? 0);
  }

  /** Forgets what was read, which takes more room than the text it was read from. */
  rest(): void {
    this.#query = undefined;
    this.#form = undefined;
  }
}

/** Lets {@link received} say of every request of an origin what came with it. */
export function receiveRequests(app: FastifyInstance, portal: Portal): void {
  let current = { ...portal };
  app.decorateRequest('received', null);
  app.addHook('onRequest', (request, _reply, done) => {
    if (current.settings !== portal.settings) current = { ...portal };
    request.setDecorator('received', new Received(request, current));
    done();
  });
  app.addHook('preHandler', (request, _reply, done) => {
    received(request).take(formBody(request));
    done();
  });
}

/**
 * Whether {@link received} can say something: a request with the method that HTTP/2 begins with (`PRI`) gets Fastify's
 * last resort, which runs the hooks of an answer and none before.
 */
export function wasReceived(request: FastifyRequest): boolean {
  return 'received' in request;
}

/** What came with a request. */
export function received(request: FastifyRequest): Received {
  return request.getDecorator<Received>('received');
}
