import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import type { PageSession, SetupAccess } from '../../core/setup-access.ts';
import { timingSafeEqualText } from '../../system/compare.ts';
import { FOR_PEOPLE, readForm } from '../http.ts';
import { type PageContext, pageContext } from '../page-context.ts';
import { behindConfirmation, isEmbeddedElsewhere, isSameOrigin, refererPath } from '../request-origin.ts';
import { cookieOf, sendForeign, sendUnreadable, sendUnsigned } from './sign-in-documents.ts';

/** Somebody who is signed in, and what was asked for. */
export interface SignedIn {
  readonly request: FastifyRequest;
  readonly reply: FastifyReply;
  readonly context: PageContext;
  readonly session: PageSession;
}

/** A form that somebody sent who is signed in, from the hub's own page. */
export interface SentForm extends SignedIn {
  readonly form: ReadonlyMap<string, string>;
}

/** Nothing behind it is seen by anybody who is not signed in, and no form counts that another site has sent. */
export class Guard {
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
  page(path: string, answer: (asked: SignedIn) => Promise<FastifyReply>): void {
    this.#app.get(path, { ...FOR_PEOPLE, exposeHeadRoute: true }, async (request, reply) => {
      const context = pageContext(this.#hubName, request);
      if (isEmbeddedElsewhere(request)) return sendForeign(reply, context, pageOf(request));
      const beside = behindConfirmation(request);
      if (beside !== null) return reply.header('cache-control', 'no-store').redirect(beside, 303);
      const session = this.#sessionOf(request);
      if (session === null) return sendUnsigned(request, reply, context);
      await this.#ready;
      return answer({ request, reply, context, session });
    });
  }

  /** What a form is sent to; it carries the session's `csrf`. @param path as Fastify has it */
  form(path: string, answer: (sent: SentForm) => Promise<FastifyReply>): void {
    this.#app.post(path, FOR_PEOPLE, async (request, reply) => {
      const context = pageContext(this.#hubName, request);
      if (!isSameOrigin(request)) return sendForeign(reply, context, pageOf(request));
      const session = this.#sessionOf(request);
      if (session === null) return sendUnsigned(request, reply, context);
      const form = readForm(request);
      if (typeof form === 'number') return sendUnreadable(reply, form, context, pageOf(request));
      if (!timingSafeEqualText(form.get('csrf') ?? '', session.csrf))
        return sendForeign(reply, context, pageOf(request));
      await this.#ready;
      return answer({ request, reply, context, session, form });
    });
  }

  #sessionOf(request: FastifyRequest): PageSession | null {
    const cookie = cookieOf(request);
    return cookie === null ? null : this.#access.session(cookie);
  }
}

/** The page of the hub's that something was sent from. */
function pageOf({ headers, host }: FastifyRequest): string {
  return refererPath(headers.referer, host);
}

/** A parameter of the path that was asked for. */
export function parameter({ request: { params } }: SignedIn, name: string): string {
  return typeof params === 'object' && params !== null ? String(Reflect.get(params, name) ?? '') : '';
}
