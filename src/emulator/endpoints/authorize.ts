import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { timingSafeEqualText } from '../../system/secret-hash.ts';
import { type RequestContext, rawQuery, requestContext } from '../http/request-context.ts';
import { addOAuth2Route, addRoute } from '../http/routes.ts';
import {
  ANY_LOGIN,
  type AuthorizationPageError,
  type AuthorizationProblem,
  type AuthorizationRefusal,
  type AuthorizationRequest,
  allowAuthorization,
  denyAuthorization,
  type LoginDemands,
  REPEATED,
  readAuthorizationRequest,
} from '../oauth/authorization-request.ts';
import type { BrowserLogin } from '../oauth/browser-logins.ts';
import { isIssuedBy } from '../oauth/issuers.ts';
import { readOAuth2AuthorizationRequest } from '../oauth/oauth2-authorization-request.ts';
import type { EmulatedPortal } from '../portal.ts';
import type { Client } from '../settings/client-registry.ts';
import { consentPage, type LoginPage, loginPage, sendMessage, sendPage } from './pages.ts';

/**
 * Serves the login page (docs/portal.md, 3) and that of the generic OAuth 2.0 server. An invalid client, redirect address
 * or state leads to an error page and never to a redirect (RFC 6749, 4.1.2.1).
 */
export function serveAuthorize(app: FastifyInstance): void {
  addRoute(app, '/sso/authorize', 'authorize', AUTHORIZE_HANDLERS);
  addOAuth2Route(app, '/oauth2/authorize', 'authorize', AUTHORIZE_HANDLERS);
}

const AUTHORIZE_HANDLERS: Parameters<typeof addRoute>[3] = {
  async GET(request, reply) {
    const context = requestContext(request);
    const authorization = readRequest(context);
    if ('problem' in authorization) return sendErrorPage(reply, authorization);
    if ('location' in authorization) return reply.redirect(authorization.location, 302);
    return showPrompt(request, reply, promptFor(context.portal, reply, authorization));
  },
  async POST(request, reply) {
    const context = requestContext(request);
    // A client may send its request by POST as well (OpenID Connect Core, 3.1.2.1); the form of a page has no such member.
    if (context.oauth2 && context.form?.has('client_id') === true) {
      const [path] = context.sentUrl.split('?');
      return reply.redirect(`${path}?${new URLSearchParams([...context.form])}`, 303);
    }
    const authorization = readRequest(context);
    if ('problem' in authorization) return sendErrorPage(reply, authorization);
    if ('location' in authorization) return reply.redirect(authorization.location, 303);
    if (context.form === null) return sendErrorPage(reply, REPEATED);
    return submitPrompt(request, reply, promptFor(context.portal, reply, authorization), context.form);
  },
};

function readRequest({ portal, oauth2, url, query }: RequestContext) {
  const read = oauth2 ? readOAuth2AuthorizationRequest : readAuthorizationRequest;
  return read(portal, rawQuery(url), query);
}

function promptFor(portal: EmulatedPortal, reply: FastifyReply, request: AuthorizationRequest): LoginPrompt {
  return {
    client: request.client,
    scope: request.flow === 'helper' ? null : request.scope,
    userCode: null,
    onShow() {
      if (request.flow === 'helper') portal.helperFlows.openLogin(request.state, request.jwt, portal.now());
    },
    demands: request.flow === 'oauth2' ? request.demands : ANY_LOGIN,
    allow: (login, status) => reply.redirect(allowAuthorization(portal, request, login), status),
    deny: (error, status) => reply.redirect(denyAuthorization(portal, request, error), status),
  };
}

const ERROR_PAGES: Readonly<Record<AuthorizationPageError, readonly [string, string]>> = {
  malformed: ['This link is not complete', 'A parameter is missing or repeated'],
  'unknown-client': ['Unknown client', 'This link belongs to a client that is not registered'],
  'unknown-redirect': ['Unknown redirect URI', 'The client requested a redirect URI that is not registered for it'],
  'expired-request': ['This link has expired', 'Start again from your application to get a new one.'],
  'invalid-state': ['This link is not valid', 'Open the link exactly as your device or application shows it.'],
  'expired-state': ['This link has expired', 'Start again from your device or application to get a new one.'],
  'used-state': ['This link was used before', 'Start again from your device or application to get a new one.'],
};

function sendErrorPage(reply: FastifyReply, { problem, found }: AuthorizationProblem): FastifyReply {
  const [title, text] = ERROR_PAGES[problem];
  return sendMessage(reply, 400, title, text.endsWith('.') ? text : `${text}: found ${found}.`);
}

/** What a user is asked: whether a client gets access. */
export interface LoginPrompt {
  readonly client: Client;
  /** The requested scope, or null. */
  readonly scope: string | null;
  /** The code that the user compares with that of a device, or null. */
  readonly userCode: string | null;
  /** What the client demands of the login. */
  readonly demands: LoginDemands;
  /** Called when the page is shown. */
  onShow?(): void;
  /** Sends the response after the user has allowed access. @param status of a redirect */
  allow(login: BrowserLogin, status: 302 | 303): FastifyReply;
  /** Sends the response without access. */
  deny(error: AuthorizationRefusal, status: 302 | 303): FastifyReply;
}

/** Characters of a wrong user name that a page repeats. */
const MAX_REPEATED_LENGTH = 200;

const NOT_LOGGED_IN_MESSAGE = 'You are no longer logged in.';
const WRONG_CREDENTIALS_MESSAGE = 'User name or password is wrong. Please try again.';

/** Shows the login page, or the confirmation page to a browser that has logged in before; both post to their address. */
export function showPrompt(request: FastifyRequest, reply: FastifyReply, prompt: LoginPrompt): FastifyReply {
  const { portal } = requestContext(request);
  const { demands } = prompt;
  const { autoLogin, users, firstUser } = portal.settings;
  const hint = demands.user ?? '';
  if (autoLogin) {
    const { name: user } = users.get(hint) ?? firstUser;
    return prompt.allow({ user, loggedInAt: portal.now() }, 302);
  }
  const login = usableLogin(portal, request, demands);
  if (demands.prompt === 'none') {
    if (login === null) return prompt.deny('login_required', 302);
    return hasConsented(portal, prompt, login.user) ? prompt.allow(login, 302) : prompt.deny('consent_required', 302);
  }
  if (login === null) {
    const userName = hint.slice(0, MAX_REPEATED_LENGTH);
    return sendLogin(reply, portal, prompt, 200, { userName, complaint: null });
  }
  return sendPromptPage(reply, prompt, 200, consentPage({ ...prompt, user: login.user }));
}

/** Whether a user has already given a client access to all that it requests. */
function hasConsented(portal: EmulatedPortal, { client, scope }: LoginPrompt, user: string): boolean {
  return portal.grants.all().some((grant) => {
    const isSame = grant.clientId === client.id && grant.user === user && isIssuedBy(portal, grant);
    const granted = grant.scope?.split(' ') ?? [];
    return isSame && !grant.revoked && (scope?.split(' ') ?? []).every((name) => granted.includes(name));
  });
}

/** Handles the form of either page. */
export function submitPrompt(
  request: FastifyRequest,
  reply: FastifyReply,
  prompt: LoginPrompt,
  form: ReadonlyMap<string, string>,
): FastifyReply {
  const { portal } = requestContext(request);
  const action = form.get('action');
  if (prompt.demands.prompt === 'none') return showPrompt(request, reply, prompt);
  if (action === 'refuse') return prompt.deny('access_denied', 303);
  if (action === 'other') return sendLogin(reply, portal, prompt, 200, { userName: '', complaint: null });
  if (action === 'continue') {
    const remembered = usableLogin(portal, request, prompt.demands);
    return remembered === null
      ? sendLogin(reply, portal, prompt, 403, { userName: '', complaint: NOT_LOGGED_IN_MESSAGE })
      : prompt.allow(remembered, 303);
  }
  const user = portal.settings.users.get(form.get('username') ?? '');
  const password = user?.password ?? portal.settings.firstUser.password;
  const isPasswordCorrect = timingSafeEqualText(form.get('password') ?? '', password);
  if (user === undefined || !isPasswordCorrect) {
    const userName = (form.get('username') ?? '').slice(0, MAX_REPEATED_LENGTH);
    return sendLogin(reply, portal, prompt, 403, { userName, complaint: WRONG_CREDENTIALS_MESSAGE });
  }
  const login = { user: user.name, loggedInAt: portal.now() };
  rememberLogin(portal, request, reply, login);
  return prompt.allow(login, 303);
}

function sendLogin(
  reply: FastifyReply,
  { settings }: EmulatedPortal,
  prompt: LoginPrompt,
  status: number,
  lastAttempt: Pick<LoginPage, 'userName' | 'complaint'>,
): FastifyReply {
  const hint = settings.usesDemoUser ? settings.firstUser : null;
  return sendPromptPage(reply, prompt, status, loginPage({ ...prompt, ...lastAttempt, hint }));
}

function sendPromptPage(reply: FastifyReply, prompt: LoginPrompt, status: number, page: string): FastifyReply {
  prompt.onShow?.();
  return sendPage(reply, status, page);
}

/** The login with this browser, if it is what the client demands; null with the setting `forgetLogins`. */
function usableLogin(
  portal: EmulatedPortal,
  { headers }: FastifyRequest,
  { prompt, maxAge, user }: LoginDemands,
): BrowserLogin | null {
  const login = portal.browserLogins.find(headers.cookie);
  if (login === null || portal.settings.forgetLogins || !portal.settings.users.has(login.user)) return null;
  const isTooOld = maxAge !== null && portal.now() >= login.loggedInAt + 1000 * maxAge;
  const isOther = user !== login.user && portal.settings.users.has(user ?? '');
  return prompt === 'login' || isTooOld || isOther ? null : login;
}

function rememberLogin(
  portal: EmulatedPortal,
  request: FastifyRequest,
  reply: FastifyReply,
  login: BrowserLogin,
): void {
  if (portal.settings.forgetLogins) return;
  const isSecure = portal.settings.tls;
  reply.header('set-cookie', portal.browserLogins.issueCookie(login, loginCookiePath(request), isSecure));
}

/** The path of the pages that share a login. */
export function loginCookiePath(request: FastifyRequest): string {
  const { oauth2, portal } = requestContext(request);
  return oauth2 ? new URL(`${portal.issuer()}/oauth2`).pathname : '/sso';
}
