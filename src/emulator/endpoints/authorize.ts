import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { timingSafeEqualText } from '../../system/compare.ts';
import { received } from '../http/received.ts';
import { rawQuery } from '../http/request-form.ts';
import { serve } from '../http/routes.ts';
import {
  type AuthorizationProblem,
  type AuthorizationRequest,
  allow,
  readAuthorizationRequest,
  refuse,
} from '../oauth/authorization-request.ts';
import type { Portal } from '../portal.ts';
import { consentPage, type LoginPage, loginPage, messagePage, sendPage } from './pages.ts';

/** Characters of a wrong user name that come back. */
const MAX_USER_NAME_LENGTH = 200;

const FORGOTTEN = 'You are not logged in any more.';
const WRONG = 'User name or password is wrong. Please try again.';

/**
 * Specification, endpoint 3: the login page, which posts back to its own address. What is wrong
 * with client, redirect address or state ends in a plain page and never in a redirect (RFC 6749, 4.1.2.1).
 */
export function serveAuthorize(app: FastifyInstance): void {
  serve(app, '/sso/authorize', 'authorize', {
    async GET(request, reply) {
      const { portal, url, query } = received(request);
      const asked = await readAuthorizationRequest(portal, rawQuery(url), query);
      if (typeof asked === 'string') return sendProblem(reply, asked);
      if ('location' in asked) return reply.redirect(asked.location, 302);
      if (portal.settings.autoLogin) return reply.redirect(allow(portal, asked, portal.settings.firstUser.name), 302);
      const user = rememberedUser(portal, request);
      return user === null
        ? sendLogin(reply, portal, asked, 200, { userName: '', complaint: null })
        : sendConsent(reply, portal, asked, user);
    },
    async POST(request, reply) {
      const { portal, url, query, form } = received(request);
      const asked = await readAuthorizationRequest(portal, rawQuery(url), query);
      if (typeof asked === 'string') return sendProblem(reply, asked);
      if ('location' in asked) return reply.redirect(asked.location, 303);
      if (form === null) return sendProblem(reply, 'malformed');
      if (form.get('action') === 'refuse') return reply.redirect(refuse(portal, asked), 303);
      if (form.get('action') === 'other')
        return sendLogin(reply, portal, asked, 200, { userName: '', complaint: null });
      if (form.get('action') === 'continue') {
        const remembered = rememberedUser(portal, request);
        return remembered === null
          ? sendLogin(reply, portal, asked, 403, { userName: '', complaint: FORGOTTEN })
          : reply.redirect(allow(portal, asked, remembered), 303);
      }
      const user = portal.settings.users.get(form.get('username') ?? '');
      const good = timingSafeEqualText(
        form.get('password') ?? '',
        user?.password ?? portal.settings.firstUser.password,
      );
      if (user === undefined || !good) {
        const userName = (form.get('username') ?? '').slice(0, MAX_USER_NAME_LENGTH);
        return sendLogin(reply, portal, asked, 403, { userName, complaint: WRONG });
      }
      remember(portal, reply, user.name);
      return reply.redirect(allow(portal, asked, user.name), 303);
    },
  });
}

function sendLogin(
  reply: FastifyReply,
  portal: Portal,
  request: AuthorizationRequest,
  status: number,
  lastTry: Pick<LoginPage, 'userName' | 'complaint'>,
): FastifyReply {
  const { demoUser, firstUser } = portal.settings;
  const page = loginPage({
    client: request.client.name,
    scope: request.flow === 'ordinary' ? request.scope : null,
    ...lastTry,
    hint: demoUser ? firstUser : null,
  });
  return send(reply, portal, request, status, page);
}

/** For a browser that has logged in before: its user only says yes or no. */
function sendConsent(reply: FastifyReply, portal: Portal, request: AuthorizationRequest, user: string): FastifyReply {
  const scope = request.flow === 'ordinary' ? request.scope : null;
  return send(reply, portal, request, 200, consentPage({ client: request.client.name, scope, user }));
}

function send(
  reply: FastifyReply,
  portal: Portal,
  request: AuthorizationRequest,
  status: number,
  page: string,
): FastifyReply {
  if (request.flow === 'helper') portal.runs.open(request.state, request.jwt, portal.now());
  const last = request.flow === 'helper' ? request.state.redirectUrl : request.redirectUri;
  return sendPage(reply, status, page, [portal.origins().base, ...(last === null ? [] : [last])]);
}

/** Who has logged in with this browser before; null where nobody has, or that counts for nothing. */
function rememberedUser(portal: Portal, { headers }: FastifyRequest): string | null {
  if (portal.settings.forgetLogins) return null;
  const user = portal.browserLogins.userOf(headers.cookie);
  return user !== null && portal.settings.users.has(user) ? user : null;
}

function remember(portal: Portal, reply: FastifyReply, user: string): void {
  if (portal.settings.forgetLogins) return;
  reply.header('set-cookie', portal.browserLogins.remember(user, portal.origins().frontend.startsWith('https:')));
}

const PROBLEMS: Readonly<Record<AuthorizationProblem, readonly [string, string]>> = {
  malformed: ['This link is not complete', 'Something is missing in the address, or comes twice.'],
  'unknown-client': ['Unknown client', 'The portal does not know the client that this link belongs to.'],
  'unknown-redirect': ['Unknown redirect address', 'The client asked for an address that is not registered for it.'],
  'invalid-state': ['This link is not valid', 'Open the link just as your device or application shows it.'],
  'expired-state': ['This link has expired', 'Start again from your device or application to get a new one.'],
  'used-state': ['This link was used before', 'Start again from your device or application to get a new one.'],
};

function sendProblem(reply: FastifyReply, problem: AuthorizationProblem): FastifyReply {
  return sendPage(reply, 400, messagePage(...PROBLEMS[problem]));
}
