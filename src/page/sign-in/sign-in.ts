import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { browserName, type PageSession, type SetupAccess, type Visitor } from '../../core/setup-access.ts';
import { cookieValue, FOR_PEOPLE, readForm } from '../http.ts';
import { pageContext } from '../page-context.ts';
import { isPrefetch, isSameOrigin, safeRedirectPath } from '../request-origin.ts';
import { Guard } from './guard.ts';
import { COOKIE, cookieOf, sendForeign, sendSignIn, sendUnreadable } from './sign-in-documents.ts';

/** All that the prefix `__Host-` asks for, and no other site's page sends it along. */
const COOKIE_ATTRIBUTES = 'Path=/; HttpOnly; Secure; SameSite=Strict';
/** The cookie by which a browser that has signed in before is known. */
const BROWSER_COOKIE = '__Host-latchkey-known';
/** How long a browser is known, in seconds: as long as browsers keep a cookie at most (RFC 6265bis, 5.5). */
const BROWSER_KNOWN = 400 * 86_400;

/** Signing in and out, and what people see who come without. @returns the guard of all other pages */
export function serveSignIn(app: FastifyInstance, access: SetupAccess, hubName: string, ready: Promise<void>): Guard {
  const guard = new Guard(app, access, { hubName, ready });
  const frameOf = (request: FastifyRequest) => pageContext(hubName, request);
  const withCookies = (request: FastifyRequest, reply: FastifyReply, { cookie, lifetime }: PageSession) => {
    const browser = access.browserCookie(cookieValue(request, BROWSER_COOKIE)).reveal();
    reply.header('set-cookie', [
      `${COOKIE}=${cookie.reveal()}; Max-Age=${lifetime}; ${COOKIE_ATTRIBUTES}`,
      `${BROWSER_COOKIE}=${browser}; Max-Age=${BROWSER_KNOWN}; ${COOKIE_ATTRIBUTES}`,
    ]);
    return reply.header('cache-control', 'no-store');
  };

  app.get('/sign-in', { ...FOR_PEOPLE, exposeHeadRoute: true }, async (request, reply) => {
    const query = URL.parse(request.url, 'https://hub.invalid')?.searchParams;
    const next = safeRedirectPath(query?.get('next') ?? undefined);
    const cookie = cookieOf(request);
    if (cookie !== null && access.session(cookie) !== null) return reply.redirect(next, 303);
    return sendSignIn(reply, 200, frameOf(request), next, { kind: query?.has('out') ? 'signed_out' : 'asked' });
  });

  app.post('/sign-in', FOR_PEOPLE, async (request, reply) => {
    const context = frameOf(request);
    if (!isSameOrigin(request)) return sendForeign(reply, context, '/');
    const form = readForm(request);
    if (typeof form === 'number') return sendUnreadable(reply, form, context, '/sign-in');
    const next = safeRedirectPath(form.get('next'));
    const typed = form.get('code');
    if (typed === undefined) return sendSignIn(reply, 400, context, next, { kind: 'missing' });
    const result = await access.signIn(typed, visitorOf(request), cookieValue(request, BROWSER_COOKIE));
    switch (result.kind) {
      case 'signed_in':
        return withCookies(request, reply, result.session).redirect(next, 303);
      case 'wrong':
        return sendSignIn(reply, 401, context, next, { kind: 'wrong', typed });
      case 'locked':
        reply.header('retry-after', result.retryAfter);
        return sendSignIn(reply, 429, context, next, result);
    }
  });

  app.get<{ readonly Params: { readonly token: string } }>('/sign-in/:token', FOR_PEOPLE, async (request, reply) => {
    // What is fetched ahead may never be looked at, and the address is good once.
    if (isPrefetch(request)) return reply.code(503).header('cache-control', 'no-store').send();
    const session = await access.redeem(request.params.token, visitorOf(request));
    if (session === null) return sendSignIn(reply, 410, frameOf(request), '/', { kind: 'used_up' });
    return withCookies(request, reply, session).redirect('/', 303);
  });

  guard.form('/sign-out', async ({ reply, session }) => {
    await access.signOut(session);
    return reply
      .headers({ 'set-cookie': `${COOKIE}=; Max-Age=0; ${COOKIE_ATTRIBUTES}`, 'cache-control': 'no-store' })
      .redirect('/sign-in?out', 303);
  });
  return guard;
}

function visitorOf({ socket, headers }: FastifyRequest): Visitor {
  return { address: socket.remoteAddress ?? '', browser: browserName(headers['user-agent']) };
}
