import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import type { PageSession, SetupAccess } from '../../core/setup-access.ts';
import { timingSafeEqualText } from '../../system/secret-hash.ts';
import { BROWSER_ROUTE, readFormBody } from '../http.ts';
import { type PageContext, pageContext } from '../page-context.ts';
import { crossSiteConfirmationRedirect, isCrossSiteEmbedding, isSameOrigin, refererPath } from '../request-origin.ts';
import { readSessionCookie, sendCsrfFailure, sendFormError, sendUnauthenticated } from './sign-in-responses.ts';

/** A request of a browser that is signed in. */
export interface AuthenticatedRequest {
  readonly request: FastifyRequest;
  readonly reply: FastifyReply;
  readonly context: PageContext;
  readonly session: PageSession;
}

/** A form that a signed-in browser sent from the hub's own page. */
export interface FormSubmission extends AuthenticatedRequest {
  readonly form: ReadonlyMap<string, string>;
}

/** Routes that need a sign-in. A form of another site is rejected. */
export class AuthenticatedRoutes {
  readonly #app: FastifyInstance;
  readonly #access: SetupAccess;
  readonly #hubName: string;
  readonly #ready: Promise<void>;

  /** @param hub `ready`: requests wait for it */
  constructor(
    app: FastifyInstance,
    access: SetupAccess,
    hub: { readonly hubName: string; readonly ready: Promise<void> },
  ) {
    this.#app = app;
    this.#access = access;
    this.#hubName = hub.hubName;
    this.#ready = hub.ready;
  }

  /**
   * Serves a page. Other sites can link to it, so a handler that changes something must check what opened it.
   * @param path a Fastify route path
   */
  page(path: string, handler: (req: AuthenticatedRequest) => Promise<FastifyReply>): void {
    this.#app.get(path, { ...BROWSER_ROUTE, exposeHeadRoute: true }, async (request, reply) => {
      const context = pageContext(this.#hubName, request);
      if (isCrossSiteEmbedding(request)) return sendCsrfFailure(reply, context, submittingPage(request));
      const redirect = crossSiteConfirmationRedirect(request);
      if (redirect !== null) return reply.header('cache-control', 'no-store').redirect(redirect, 303);
      const session = this.#sessionOf(request);
      if (session === null) return sendUnauthenticated(request, reply, context);
      await this.#ready;
      return handler({ request, reply, context, session });
    });
  }

  /** Serves a form, which carries the session's CSRF token in `csrf`. @param path a Fastify route path */
  form(path: string, handler: (submission: FormSubmission) => Promise<FastifyReply>): void {
    this.#app.post(path, BROWSER_ROUTE, async (request, reply) => {
      const context = pageContext(this.#hubName, request);
      if (!isSameOrigin(request)) return sendCsrfFailure(reply, context, submittingPage(request));
      const session = this.#sessionOf(request);
      if (session === null) return sendUnauthenticated(request, reply, context);
      const form = readFormBody(request);
      if (typeof form === 'number') return sendFormError(reply, form, context, submittingPage(request));
      if (!timingSafeEqualText(form.get('csrf') ?? '', session.csrfToken))
        return sendCsrfFailure(reply, context, submittingPage(request));
      await this.#ready;
      return handler({ request, reply, context, session, form });
    });
  }

  #sessionOf(request: FastifyRequest): PageSession | null {
    const cookie = readSessionCookie(request);
    return cookie === null ? null : this.#access.findSession(cookie);
  }
}

/** The page of the hub from which a request was sent. */
function submittingPage({ headers, host }: FastifyRequest): string {
  return refererPath(headers.referer, host);
}

/** A parameter of the request's path; empty if there is none. */
export function pathParameter({ request: { params } }: AuthenticatedRequest, name: string): string {
  return typeof params === 'object' && params !== null ? String(Reflect.get(params, name) ?? '') : '';
}
