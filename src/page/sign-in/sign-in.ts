import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { type BrowserInfo, type BrowserSession, browserName, type SetupAccess } from '../../core/setup-access.ts';
import { unmapIpv4 } from '../../system/addresses.ts';
import { readFormBody } from '../http.ts';
import { pageContext } from '../page-context.ts';
import { isPrefetch, isSameOrigin, refererPath, safeRedirectPath } from '../request-origin.ts';
import { AuthenticatedRoutes, type GuardedHub, type PageAuthentication } from './authenticated-routes.ts';
import {
  mayWithholdCookie,
  readSessionCookie,
  SESSION_COOKIE,
  sendCsrfFailure,
  sendFormError,
  sendSameOriginRedirect,
  sendSignInPage,
  sendUnauthenticated,
} from './sign-in-responses.ts';

/** What the prefix `__Host-` requires. With `SameSite=Strict` the requests of other sites do not carry the cookie. */
const COOKIE_ATTRIBUTES = 'Path=/; HttpOnly; Secure; SameSite=Strict';

/** Recognises browsers that have signed in with the setup code or a one-time address, by their session cookie. */
function cookieAuthentication(access: SetupAccess): PageAuthentication {
  return {
    findSession(request) {
      const cookie = readSessionCookie(request);
      return cookie === null ? null : access.findSession(cookie);
    },
    sendUnauthenticated,
    isSameOrigin,
    submittingPage: ({ headers, host }) => refererPath(headers.referer, host),
    userName: () => null,
  };
}

/** Serves signing in and out. @returns the routes that need a sign-in */
export function serveSignIn(app: FastifyInstance, access: SetupAccess, hub: GuardedHub): AuthenticatedRoutes {
  const authentication = cookieAuthentication(access);
  const guard = new AuthenticatedRoutes(app, authentication, hub);
  const isSignedIn = (request: FastifyRequest) => authentication.findSession(request) !== null;
  const contextOf = (request: FastifyRequest) => pageContext(hub.hubName, request);
  const withCookie = (reply: FastifyReply, { cookie, lifetime }: BrowserSession) =>
    reply.headers({
      'set-cookie': `${SESSION_COOKIE}=${cookie.reveal()}; Max-Age=${lifetime}; ${COOKIE_ATTRIBUTES}`,
      'cache-control': 'no-store',
    });

  app.get('/sign-in', { exposeHeadRoute: true }, async (request, reply) => {
    const query = URL.parse(request.url, 'https://hub.invalid')?.searchParams;
    const next = safeRedirectPath(query?.get('next') ?? undefined);
    if (isSignedIn(request)) return reply.redirect(next, 303);
    return sendSignInPage(reply, 200, contextOf(request), next, { kind: query?.has('out') ? 'signed_out' : 'asked' });
  });

  app.post('/sign-in', async (request, reply) => {
    const context = contextOf(request);
    if (!isSameOrigin(request)) return sendCsrfFailure(reply, context, '/');
    const form = readFormBody(request);
    if (typeof form === 'number') return sendFormError(reply, form, context, '/sign-in');
    const next = safeRedirectPath(form.get('next'));
    const typed = form.get('code');
    if (typed === undefined) return sendSignInPage(reply, 400, context, next, { kind: 'missing' });
    const result = await access.signIn(typed, browserInfo(request));
    switch (result.kind) {
      case 'signed_in':
        return withCookie(reply, result.session).redirect(next, 303);
      case 'wrong':
        return sendSignInPage(reply, 401, context, next, { kind: 'wrong', typed });
      case 'locked':
        reply.header('retry-after', result.retryAfter);
        return sendSignInPage(reply, 429, context, next, { kind: 'locked' });
    }
  });

  app.get<{ readonly Params: { readonly token: string } }>('/sign-in/:token', async (request, reply) => {
    // A prefetch must not use up the address, which works only once.
    if (isPrefetch(request)) return reply.code(503).header('cache-control', 'no-store').send();
    const session = await access.redeemSignInToken(request.params.token, browserInfo(request));
    if (session !== null) return withCookie(reply, session).redirect('/', 303);
    // Somebody opens the address that they signed in with once more.
    if (isSignedIn(request)) return reply.header('cache-control', 'no-store').redirect('/', 303);
    if (mayWithholdCookie(request)) return sendSameOriginRedirect(reply, contextOf(request), request.url);
    return sendSignInPage(reply, 410, contextOf(request), '/', { kind: 'used_up' });
  });

  guard.form('/sign-out', async ({ request, reply }) => {
    const session = access.findSession(readSessionCookie(request) ?? '');
    if (session !== null) await access.signOut(session);
    return reply
      .headers({ 'set-cookie': `${SESSION_COOKIE}=; Max-Age=0; ${COOKIE_ATTRIBUTES}`, 'cache-control': 'no-store' })
      .redirect('/sign-in?out', 303);
  });
  return guard;
}

/** The browser that has sent a request. */
export function browserInfo({ socket, headers }: FastifyRequest): BrowserInfo {
  return { address: unmapIpv4(socket.remoteAddress ?? ''), browser: browserName(headers['user-agent']) };
}
