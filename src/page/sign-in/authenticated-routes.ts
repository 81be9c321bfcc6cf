import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import type { PageSession, SetupAccess } from '../../core/setup-access.ts';
import { timingSafeEqualText } from '../../system/secret-hash.ts';
import { BROWSER_ROUTE, readFormBody } from '../http.ts';
import { type PageContext, pageContext } from '../page-context.ts';
import { crossSiteConfirmationRedirect, isCrossSiteEmbedding, isSameOrigin, refererPath } from '../request-origin.ts';
import { readSessionCookie, sendCsrfFailure, sendFormError, sendUnauthenticated } from './sign-in-responses.ts';

/** Somebody who is signed in, and what was asked for. */
export interface AuthenticatedRequest {
  readonly request: FastifyRequest;
  readonly reply: FastifyReply;
  readonly context: PageContext;
  readonly session: PageSession;
}

/** A form that somebody sent who is signed in, from the hub's own page. */
export interface FormSubmission extends AuthenticatedRequest {
  readonly form: ReadonlyMap<string, string>;
}

/** Nothing behind it is seen by anybody who is not signed in, and no form counts that another site has sent. */
export class AuthenticatedRoutes {
  readonly #app: FastifyInstance;
  readonly #access: SetupAccess;
  readonly #hubName: string;
  readonly #ready: Promise<void>;

  /** @param hub nobody who is signed in is answered before it is ready */
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

  /** A page; it changes nothing. @param path as Fastify has it */
  page(path: string, answer: (asked: AuthenticatedRequest) => Promise<FastifyReply>): void {
    this.#app.get(path, { ...BROWSER_ROUTE, exposeHeadRoute: true }, async (request, reply) => {
      const context = pageContext(this.#hubName, request);
      if (isCrossSiteEmbedding(request)) return sendCsrfFailure(reply, context, submittingPage(request));
      const beside = crossSiteConfirmationRedirect(request);
      if (beside !== null) return reply.header('cache-control', 'no-store').redirect(beside, 303);
      const session = this.#sessionOf(request);
      if (session === null) return sendUnauthenticated(request, reply, context);
      await this.#ready;
      return answer({ request, reply, context, session });
    });
  }

  /** What a form is sent to; it carries the session's `csrf`. @param path as Fastify has it */
  form(path: string, answer: (sent: FormSubmission) => Promise<FastifyReply>): void {
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
      return answer({ request, reply, context, session, form });
    });
  }

  #sessionOf(request: FastifyRequest): PageSession | null {
    const cookie = readSessionCookie(request);
    return cookie === null ? null : this.#access.findSession(cookie);
  }
}

/** The page of the hub's that something was sent from. */
function submittingPage({ headers, host }: FastifyRequest): string {
  return refererPath(headers.referer, host);
}

/** A parameter of the path that was asked for. */
export function pathParameter({ request: { params } }: AuthenticatedRequest, name: string): string {
  return typeof params === 'object' && params !== null ? String(Reflect.get(params, name) ?? '') : '';
}
