import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import type { Administration } from '../../core/administration.ts';
import { Failure } from '../../core/failure.ts';
import type { Log } from '../../core/log.ts';
import type { PageSession } from '../../core/setup-access.ts';
import { timingSafeEqualText } from '../../system/secret-hash.ts';
import { sendFailure } from '../failures.ts';
import { readFormBody } from '../http.ts';
import { type AuthenticatedRequest, type FormSubmission, type PageContext, pageContext } from '../page-context.ts';
import { crossSiteConfirmationRedirect, isCrossSiteEmbedding } from '../request-origin.ts';
import { sendCsrfFailure, sendFormError } from './sign-in-responses.ts';

/** How a listener recognises the people who use the installer's page, and the forms of its own pages. */
export interface PageAuthentication {
  /** The session of a request; null if there is none. */
  findSession(request: FastifyRequest): PageSession | null;
  /** Responds to a page request or form without a session. */
  sendUnauthenticated(request: FastifyRequest, reply: FastifyReply, context: PageContext): FastifyReply;
  /** Whether a form did not come from another site's page. */
  isSameOrigin(request: FastifyRequest): boolean;
  /** The page of the hub from which a request was sent; `/` if that is unknown. */
  submittingPage(request: FastifyRequest): string;
  /** The name of the user, for the log and the history; null if it is unknown. */
  userName(request: FastifyRequest): string | null;
}

/** The hub behind the routes that need a sign-in. */
export interface GuardedHub {
  readonly hubName: string;
  readonly administration: Administration;
  readonly log: Log;
  /** Requests wait for it. */
  readonly ready: Promise<void>;
}

/** Routes that need a sign-in. A form of another site is rejected. For a {@link Failure} of a handler they send a page. */
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
      return this.#handle(handler, { reply, context, session, ...this.#describe(request) });
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
      return this.#handle(handler, { reply, context, session, ...this.#describe(request), form });
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

  async #handle<Req extends AuthenticatedRequest>(
    handler: (req: Req) => Promise<FastifyReply>,
    req: Req,
  ): Promise<FastifyReply> {
    try {
      return await handler(req);
    } catch (error) {
      if (error instanceof Failure) return sendFailure(req, error, this.#hub.log);
      throw error;
    }
  }
}
