import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { timingSafeEqualText } from '../../system/secret-hash.ts';
import { requestContext } from '../http/request-context.ts';
import { rawQuery } from '../http/request-form.ts';
import { addRoute } from '../http/routes.ts';
import {
  type AuthorizationPageError,
  type AuthorizationRequest,
  allowAuthorization,
  denyAuthorization,
  readAuthorizationRequest,
} from '../oauth/authorization-request.ts';
import type { EmulatedPortal } from '../portal.ts';
import { consentPage, type LoginPage, loginPage, messagePage, sendPage } from './pages.ts';

/** Characters of a wrong user name that the page repeats. */
const MAX_USER_NAME_LENGTH = 200;

const NOT_LOGGED_IN_MESSAGE = 'You are no longer logged in.';
const WRONG_CREDENTIALS_MESSAGE = 'User name or password is wrong. Please try again.';

/**
 * Serves the login page (docs/portal.md, 3), which posts to its own address. An invalid client, redirect address or
 * state leads to an error page and never to a redirect (RFC 6749, 4.1.2.1).
 */
export function serveAuthorize(app: FastifyInstance): void {
  addRoute(app, '/sso/authorize', 'authorize', {
    async GET(request, reply) {
      const { portal, url, query } = requestContext(request);
      const authorization = await readAuthorizationRequest(portal, rawQuery(url), query);
      if (typeof authorization === 'string') return sendErrorPage(reply, authorization);
      if ('location' in authorization) return reply.redirect(authorization.location, 302);
      if (portal.settings.autoLogin)
        return reply.redirect(allowAuthorization(portal, authorization, portal.settings.firstUser.name), 302);
      const user = rememberedUser(portal, request);
      return user === null
        ? sendLogin(reply, portal, authorization, 200, { userName: '', complaint: null })
        : sendConsent(reply, portal, authorization, user);
    },
    async POST(request, reply) {
      const { portal, url, query, form } = requestContext(request);
      const authorization = await readAuthorizationRequest(portal, rawQuery(url), query);
      if (typeof authorization === 'string') return sendErrorPage(reply, authorization);
      if ('location' in authorization) return reply.redirect(authorization.location, 303);
      if (form === null) return sendErrorPage(reply, 'malformed');
      if (form.get('action') === 'refuse') return reply.redirect(denyAuthorization(portal, authorization), 303);
      if (form.get('action') === 'other')
        return sendLogin(reply, portal, authorization, 200, { userName: '', complaint: null });
      if (form.get('action') === 'continue') {
        const remembered = rememberedUser(portal, request);
        return remembered === null
          ? sendLogin(reply, portal, authorization, 403, { userName: '', complaint: NOT_LOGGED_IN_MESSAGE })
          : reply.redirect(allowAuthorization(portal, authorization, remembered), 303);
      }
      const user = portal.settings.users.get(form.get('username') ?? '');
      const isPasswordCorrect = timingSafeEqualText(
        form.get('password') ?? '',
        user?.password ?? portal.settings.firstUser.password,
      );
      if (user === undefined || !isPasswordCorrect) {
        const userName = (form.get('username') ?? '').slice(0, MAX_USER_NAME_LENGTH);
        return sendLogin(reply, portal, authorization, 403, { userName, complaint: WRONG_CREDENTIALS_MESSAGE });
      }
      rememberUser(portal, reply, user.name);
      return reply.redirect(allowAuthorization(portal, authorization, user.name), 303);
    },
  });
}

function sendLogin(
  reply: FastifyReply,
  portal: EmulatedPortal,
  request: AuthorizationRequest,
  status: number,
  lastAttempt: Pick<LoginPage, 'userName' | 'complaint'>,
): FastifyReply {
  const { usesDemoUser, firstUser } = portal.settings;
  const page = loginPage({
    client: request.client.name,
    scope: request.flow === 'ordinary' ? request.scope : null,
    ...lastAttempt,
    hint: usesDemoUser ? firstUser : null,
  });
  return sendAuthorizationPage(reply, portal, request, status, page);
}

/** Sends the confirmation page to a browser that has logged in before. */
function sendConsent(
  reply: FastifyReply,
  portal: EmulatedPortal,
  request: AuthorizationRequest,
  user: string,
): FastifyReply {
  const scope = request.flow === 'ordinary' ? request.scope : null;
  return sendAuthorizationPage(reply, portal, request, 200, consentPage({ client: request.client.name, scope, user }));
}

function sendAuthorizationPage(
  reply: FastifyReply,
  portal: EmulatedPortal,
  request: AuthorizationRequest,
  status: number,
  page: string,
): FastifyReply {
  if (request.flow === 'helper') portal.helperFlows.openLogin(request.state, request.jwt, portal.now());
  const redirectTarget = request.flow === 'helper' ? request.state.redirectUrl : request.redirectUri;
  return sendPage(reply, status, page, [portal.origins().base, ...(redirectTarget === null ? [] : [redirectTarget])]);
}

/** The user who has logged in with this browser before; null if there is none, or with the setting `forgetLogins`. */
function rememberedUser(portal: EmulatedPortal, { headers }: FastifyRequest): string | null {
  if (portal.settings.forgetLogins) return null;
  const user = portal.browserLogins.findUser(headers.cookie);
  return user !== null && portal.settings.users.has(user) ? user : null;
}

function rememberUser(portal: EmulatedPortal, reply: FastifyReply, user: string): void {
  if (portal.settings.forgetLogins) return;
  reply.header('set-cookie', portal.browserLogins.issueCookie(user, portal.origins().frontend.startsWith('https:')));
}

const ERROR_PAGES: Readonly<Record<AuthorizationPageError, readonly [string, string]>> = {
  malformed: ['This link is not complete', 'A part of the address is missing or repeated.'],
  'unknown-client': ['Unknown client', 'The portal does not know the client that this link belongs to.'],
  'unknown-redirect': ['Unknown redirect address', 'The client requested an address that is not registered for it.'],
  'invalid-state': ['This link is not valid', 'Open the link exactly as your device or application shows it.'],
  'expired-state': ['This link has expired', 'Start again from your device or application to get a new one.'],
  'used-state': ['This link was used before', 'Start again from your device or application to get a new one.'],
};

function sendErrorPage(reply: FastifyReply, problem: AuthorizationPageError): FastifyReply {
  return sendPage(reply, 400, messagePage(...ERROR_PAGES[problem]));
}
