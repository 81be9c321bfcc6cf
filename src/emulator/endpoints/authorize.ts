import type { FastifyInstance, FastifyReply } from 'fastify';
import { type RequestContext, requestContext } from '../http/request-context.ts';
import { rawQuery } from '../http/request-form.ts';
import { addOAuth2Route, addRoute } from '../http/routes.ts';
import {
  type AuthorizationPageError,
  type AuthorizationRequest,
  allowAuthorization,
  denyAuthorization,
  readAuthorizationRequest,
} from '../oauth/authorization-request.ts';
import { readOAuth2AuthorizationRequest } from '../oauth/oauth2-authorization-request.ts';
import type { EmulatedPortal } from '../portal.ts';
import { type LoginPrompt, showPrompt, submitPrompt } from './login-prompt.ts';
import { messagePage, sendPage } from './pages.ts';

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
    const authorization = await readRequest(context);
    if (typeof authorization === 'string') return sendErrorPage(reply, authorization);
    if ('location' in authorization) return reply.redirect(authorization.location, 302);
    return showPrompt(request, reply, promptFor(context.portal, reply, authorization));
  },
  async POST(request, reply) {
    const context = requestContext(request);
    const authorization = await readRequest(context);
    if (typeof authorization === 'string') return sendErrorPage(reply, authorization);
    if ('location' in authorization) return reply.redirect(authorization.location, 303);
    if (context.form === null) return sendErrorPage(reply, 'malformed');
    return submitPrompt(request, reply, promptFor(context.portal, reply, authorization), context.form);
  },
};

function readRequest({ portal, oauth2, url, query }: RequestContext) {
  const read = oauth2 ? readOAuth2AuthorizationRequest : readAuthorizationRequest;
  return read(portal, rawQuery(url), query);
}

function promptFor(portal: EmulatedPortal, reply: FastifyReply, request: AuthorizationRequest): LoginPrompt {
  const redirectTarget = request.flow === 'helper' ? request.state.redirectUrl : request.redirectUri;
  return {
    client: request.client,
    scope: request.flow === 'helper' ? null : request.scope,
    userCode: null,
    formTargets: [portal.origins().base, ...(redirectTarget === null ? [] : [redirectTarget])],
    onShow() {
      if (request.flow === 'helper') portal.helperFlows.openLogin(request.state, request.jwt, portal.now());
    },
    allow: (user, status) => reply.redirect(allowAuthorization(portal, request, user), status),
    deny: () => reply.redirect(denyAuthorization(portal, request), 303),
  };
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
