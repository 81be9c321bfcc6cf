import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { browserName } from '../../core/browser-name.ts';
import type { PageSession, SetupAccess, Visitor } from '../../core/setup-access.ts';
import { cookieNamed } from '../cookies.ts';
import { sendPage } from '../document.ts';
import { type Frame, frameFor } from '../frame.ts';
import { fromOwnPage, isLedHere } from '../own-page.ts';
import { FOR_PEOPLE } from '../routes-for-people.ts';
import { BROWSER_COOKIE, COOKIE, cookieOf, Guard, type Refusals, readForm } from './guard.ts';
import { ownPath, pageOfForm } from './own-path.ts';
import { type Reason, sendForeign, sendGoingOn, sendUnreadable, signInPage } from './sign-in-documents.ts';

/** All that the prefix `__Host-` asks for, and no other site's page sends it along. */
const COOKIE_ATTRIBUTES = 'Path=/; HttpOnly; Secure; SameSite=Strict';
/** How long a browser is known, in seconds: as long as browsers keep a cookie at most (RFC 6265bis, 5.5). */
const BROWSER_KNOWN = 400 * 86_400;

/** Signing in and out, and what people see who come without. @returns the guard of all other pages */
export function serveSignIn(app: FastifyInstance, access: SetupAccess, hubName: string, ready: Promise<void>): Guard {
  const guard = new Guard(app, access, { hubName, ready }, refusals);
  const frameOf = (request: FastifyRequest) => frameFor(hubName, request);
  const withCookies = (request: FastifyRequest, reply: FastifyReply, { cookie, lifetime }: PageSession) => {
    const browser = access.browserCookie(cookieNamed(request, BROWSER_COOKIE)).reveal();
    reply.header('set-cookie', [
      `${COOKIE}=${cookie.reveal()}; Max-Age=${lifetime}; ${COOKIE_ATTRIBUTES}`,
      `${BROWSER_COOKIE}=${browser}; Max-Age=${BROWSER_KNOWN}; ${COOKIE_ATTRIBUTES}`,
    ]);
    return reply.header('cache-control', 'no-store');
  };

  app.get('/sign-in', { ...FOR_PEOPLE, exposeHeadRoute: true }, async (request, reply) => {
    const query = URL.parse(request.url, 'https://hub.invalid')?.searchParams;
    const next = ownPath(query?.get('next') ?? undefined);
    const cookie = cookieOf(request);
    if (cookie !== null && access.session(cookie) !== null) return reply.redirect(next, 303);
    return sendSignIn(reply, 200, frameOf(request), next, { kind: query?.has('out') ? 'signed_out' : 'asked' });
  });

  app.post('/sign-in', FOR_PEOPLE, async (request, reply) => {
    const frame = frameOf(request);
    if (!fromOwnPage(request)) return sendForeign(reply, frame, '/');
    const form = readForm(request);
    if (typeof form === 'number') return sendUnreadable(reply, form, frame, '/sign-in');
    const next = ownPath(form.get('next'));
    const typed = form.get('code');
    if (typed === undefined) return sendSignIn(reply, 400, frame, next, { kind: 'missing' });
    const result = await access.signIn(typed, visitorOf(request), cookieNamed(request, BROWSER_COOKIE));
    switch (result.kind) {
      case 'signed_in':
        return withCookies(request, reply, result.session).redirect(next, 303);
      case 'wrong':
        return sendSignIn(reply, 401, frame, next, { kind: 'wrong', typed });
      case 'locked':
        reply.header('retry-after', result.retryAfter);
        return sendSignIn(reply, 429, frame, next, result);
    }
  });

  app.get<{ readonly Params: { readonly token: string } }>('/sign-in/:token', FOR_PEOPLE, async (request, reply) => {
    // What is fetched ahead may never be looked at, and the address is good once.
    if (isAhead(request)) return reply.code(503).header('cache-control', 'no-store').send();
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

const refusals: Refusals = {
  async signIn(request, reply, frame) {
    const { method, url, headers, host } = request;
    const hadCookie = cookieOf(request) !== null;
    if (method === 'POST') {
      return sendSignIn(reply, 401, frame, pageOfForm(headers.referer, host), { kind: 'ended_meanwhile' });
    }
    // The browser keeps the session's cookie back then.
    if (!hadCookie && isLedHere(request)) return sendGoingOn(reply, frame, ownPath(url));
    return sendSignIn(reply, 401, frame, ownPath(url), { kind: hadCookie ? 'ended' : 'asked' });
  },
  async foreign({ headers, host }, reply, frame) {
    return sendForeign(reply, frame, pageOfForm(headers.referer, host));
  },
  async unreadable({ headers, host }, reply, frame, status) {
    return sendUnreadable(reply, status, frame, pageOfForm(headers.referer, host));
  },
};

function sendSignIn(reply: FastifyReply, status: number, frame: Frame, next: string, reason: Reason): FastifyReply {
  // Who has opened this window from elsewhere can't put another page, made up like this one, in its place.
  reply.header('cross-origin-opener-policy', 'same-origin');
  return sendPage(reply, status, frame, signInPage(frame.texts, next, reason));
}

function visitorOf({ socket, headers }: FastifyRequest): Visitor {
  return { address: socket.remoteAddress ?? '', browser: browserName(headers['user-agent']) };
}

/** Whether a browser fetches a page before anybody wants to see it. */
function isAhead({ headers }: FastifyRequest): boolean {
  return ['sec-purpose', 'purpose', 'x-moz', 'x-purpose'].some((name) =>
    /prefetch|preview/i.test(String(headers[name] ?? '')),
  );
}
