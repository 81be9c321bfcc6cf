import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import type { PageSession, SetupAccess } from '../../core/setup-access.ts';
import { timingSafeEqualText } from '../../system/compare.ts';
import { cookieValue, FOR_PEOPLE, readForm, type Unreadable } from '../http.ts';
import { type PageContext, pageContext } from '../page-context.ts';
import { behindConfirmation, isEmbeddedElsewhere, isSameOrigin } from '../request-origin.ts';

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

/** How requests are answered that get no further. */
export interface Refusals {
  /** Nobody is signed in, or no longer; `request` may have been a form that was sent. */
  signIn(request: FastifyRequest, reply: FastifyReply, context: PageContext): Promise<FastifyReply>;
  /** Another site's form, or one of an earlier session; or another site's page would have this in itself. */
  foreign(request: FastifyRequest, reply: FastifyReply, context: PageContext): Promise<FastifyReply>;
  unreadable(
    request: FastifyRequest,
    reply: FastifyReply,
    context: PageContext,
    status: Unreadable,
  ): Promise<FastifyReply>;
}

/** The cookie of a session. Browsers take one of this prefix from its own host alone, over TLS (RFC 6265bis, 4.1.3.2). */
export const COOKIE = '__Host-latchkey';
/** The cookie by which a browser that has signed in before is known. */
export const BROWSER_COOKIE = '__Host-latchkey-known';

/** Nothing behind it is seen by anybody who is not signed in, and no form counts that another site has sent. */
export class Guard {
  readonly #app: FastifyInstance;
  readonly #access: SetupAccess;
  readonly #hubName: string;
  readonly #ready: Promise<void>;
  readonly #refusals: Refusals;

  /** @param hub nobody who is signed in is answered before it is ready */
  constructor(
    app: FastifyInstance,
    access: SetupAccess,
    hub: { readonly hubName: string; readonly ready: Promise<void> },
    refusals: Refusals,
  ) {
    this.#app = app;
    this.#access = access;
    this.#hubName = hub.hubName;
    this.#ready = hub.ready;
    this.#refusals = refusals;
  }

  /** A page; it changes nothing. @param path as Fastify has it */
  page(path: string, answer: (asked: SignedIn) => Promise<FastifyReply>): void {
    this.#app.get(path, { ...FOR_PEOPLE, exposeHeadRoute: true }, async (request, reply) => {
      const context = pageContext(this.#hubName, request);
      if (isEmbeddedElsewhere(request)) return this.#refusals.foreign(request, reply, context);
      const beside = behindConfirmation(request);
      if (beside !== null) return reply.header('cache-control', 'no-store').redirect(beside, 303);
      const session = this.#sessionOf(request);
      if (session === null) return this.#refusals.signIn(request, reply, context);
      await this.#ready;
      return answer({ request, reply, context, session });
    });
  }

  /** What a form is sent to; it carries the session's `csrf`. @param path as Fastify has it */
  form(path: string, answer: (sent: SentForm) => Promise<FastifyReply>): void {
    this.#app.post(path, FOR_PEOPLE, async (request, reply) => {
      const context = pageContext(this.#hubName, request);
      if (!isSameOrigin(request)) return this.#refusals.foreign(request, reply, context);
      const session = this.#sessionOf(request);
      if (session === null) return this.#refusals.signIn(request, reply, context);
      const form = readForm(request);
      if (typeof form === 'number') return this.#refusals.unreadable(request, reply, context, form);
      if (!timingSafeEqualText(form.get('csrf') ?? '', session.csrf))
        return this.#refusals.foreign(request, reply, context);
      await this.#ready;
      return answer({ request, reply, context, session, form });
    });
  }

  #sessionOf(request: FastifyRequest): PageSession | null {
    const cookie = cookieOf(request);
    return cookie === null ? null : this.#access.session(cookie);
  }
}

/** The value of the session's cookie; null where there is none. */
export function cookieOf(request: FastifyRequest): string | null {
  return cookieValue(request, COOKIE);
}

/** A parameter of the path that was asked for. */
export function parameter({ request: { params } }: SignedIn, name: string): string {
  return typeof params === 'object' && params !== null ? String(Reflect.get(params, name) ?? '') : '';
}
