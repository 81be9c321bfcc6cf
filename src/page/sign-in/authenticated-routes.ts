import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import type { Administration } from '../../core/administration.ts';
import type { PageSession } from '../../core/setup-access.ts';
import { timingSafeEqualText } from '../../system/secret-hash.ts';
import { readFormBody } from '../http.ts';
import { type PageContext, pageContext } from '../page-context.ts';
import { crossSiteConfirmationRedirect, isCrossSiteEmbedding } from '../request-origin.ts';
import type { PageAuthentication } from './page-authentication.ts';
import { sendCsrfFailure, sendFormError } from './sign-in-responses.ts';

/** What a page for somebody who is signed in is made from. */
export interface PageRequest {
  readonly reply: FastifyReply;
  readonly context: PageContext;
  readonly session: PageSession;
}

/** A request of somebody who is signed in. */
export interface AuthenticatedRequest extends PageRequest {
  readonly request: FastifyRequest;
  /** The operations, in the name of the user if that is known. Everything that a request changes goes through it. */
  readonly administration: Administration;
  /** Whether the session has not ended since. */
  isSignedIn(): boolean;
}

/** A form that a signed-in user sent from the hub's own page. */
export interface FormSubmission extends AuthenticatedRequest {
  readonly form: ReadonlyMap<string, string>;
}

/** The hub behind the routes that need a sign-in. */
export interface GuardedHub {
  readonly hubName: string;
  readonly administration: Administration;
  /** Requests wait for it. */
  readonly ready: Promise<void>;
}

/** Routes that need a sign-in. A form of another site is rejected. */
export class AuthenticatedRoutes {
  readonly #app: FastifyInstance;
  readonly #authentication: PageAuthentication;
  readonly #hub: GuardedHub;

  constructor(app: FastifyInstance, authentication: PageAuthentication, hub: GuardedHub) {
    this.#app = app;
    this.#authentication = authentication;
    this.#hub = hub;
  }

  /**
   * Serves a page. Other sites can link to it, so a handler that changes something must check what opened it.
   * @param path a Fastify route path
   */
  page(path: string, handler: (req: AuthenticatedRequest) => Promise<FastifyReply>): void {
    this.#app.get(path, { exposeHeadRoute: true }, async (request, reply) => {
      const authentication = this.#authentication;
      const context = pageContext(this.#hub.hubName, request);
      if (isCrossSiteEmbedding(request)) return sendCsrfFailure(reply, context, authentication.submittingPage(request));
      const redirect = crossSiteConfirmationRedirect(request);
      if (redirect !== null) return reply.header('cache-control', 'no-store').redirect(redirect, 303);
      const session = authentication.findSession(request);
      if (session === null) return authentication.sendUnauthenticated(request, reply, context);
      await this.#hub.ready;
      return handler({ reply, context, session, ...this.#describe(request) });
    });
  }

  /** Serves a form, which carries the session's CSRF token in `csrf`. @param path a Fastify route path */
  form(path: string, handler: (submission: FormSubmission) => Promise<FastifyReply>): void {
    this.#app.post(path, async (request, reply) => {
      const authentication = this.#authentication;
      const context = pageContext(this.#hub.hubName, request);
      const page = authentication.submittingPage(request);
      if (!authentication.isSameOrigin(request)) return sendCsrfFailure(reply, context, page);
      const session = authentication.findSession(request);
      if (session === null) return authentication.sendUnauthenticated(request, reply, context);
      const form = readFormBody(request);
      if (typeof form === 'number') return sendFormError(reply, form, context, page);
      if (!timingSafeEqualText(form.get('csrf') ?? '', session.csrfToken)) return sendCsrfFailure(reply, context, page);
      await this.#hub.ready;
      return handler({ reply, context, session, ...this.#describe(request), form });
    });
  }

  #describe(request: FastifyRequest): Pick<AuthenticatedRequest, 'request' | 'administration' | 'isSignedIn'> {
    const { administration } = this.#hub;
    const user = this.#authentication.userName(request);
    return {
      request,
      administration: user === null ? administration : administration.asUser(user),
      isSignedIn: () => this.#authentication.findSession(request) !== null,
    };
  }
}

/** A parameter of the request's path; empty if there is none. */
export function pathParameter({ request: { params } }: AuthenticatedRequest, name: string): string {
  return typeof params === 'object' && params !== null ? String(Reflect.get(params, name) ?? '') : '';
}
