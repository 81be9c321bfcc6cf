import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { invalidRequest, type OAuthError, sendOAuthError } from '../http/oauth-error.ts';
import { requestContext } from '../http/request-context.ts';
import { addOAuth2Route } from '../http/routes.ts';
import { type ClientRequest, readClientRequest, unmetOfRequest } from '../http/token-request.ts';
import { ANY_LOGIN } from '../oauth/authorization-request.ts';
import type { BrowserLogin } from '../oauth/browser-logins.ts';
import type { DeviceLogin } from '../oauth/device-logins.ts';
import { readCodeChallenge, readRequestedScope, requestsOfflineAccess } from '../oauth/oauth2-authorization-request.ts';
import type { EmulatedPortal } from '../portal.ts';
import { type LoginPrompt, showPrompt, submitPrompt } from './authorize.ts';
import { sendMessage, sendPage, userCodePage } from './pages.ts';

/** Serves the device authorization endpoint (RFC 8628, 3.1). */
export function serveDeviceAuthorization(app: FastifyInstance): void {
  addOAuth2Route(app, '/oauth2/device_authorization', 'device_authorization', {
    async POST(request, reply) {
      const received = await readClientRequest(request, reply);
      if ('problem' in received) return sendOAuthError(reply, received.problem);
      const { portal } = requestContext(request);
      const unmet = unmetOfRequest(request, 'device', received);
      if (unmet !== null) return sendOAuthError(reply, invalidRequest(unmet));
      const login = beginDeviceLogin(portal, received);
      return 'error' in login ? sendOAuthError(reply, login) : reply.send(deviceAuthorizationResponse(portal, login));
    },
  });
}

function beginDeviceLogin(portal: EmulatedPortal, { client, form }: ClientRequest): DeviceLogin | OAuthError {
  const { settings } = portal;
  if (settings.flows === 'code') {
    return { status: 400, error: 'unauthorized_client', description: 'use the authorization code flow' };
  }
  const requested = readRequestedScope(form.get('scope'), settings);
  if ('refused' in requested) return { status: 400, error: 'invalid_scope', description: requested.refused };
  const { scope } = requested;
  const pkce = readCodeChallenge(form, settings);
  if ('refused' in pkce) return invalidRequest(pkce.refused);
  const offline = requestsOfflineAccess(scope, form);
  const { issuerName: issuer } = portal;
  return portal.deviceLogins.issue(
    { issuer, clientId: client.id, scope, challenge: pkce.challenge, offline },
    settings,
  );
}

/** RFC 8628, 3.2. */
function deviceAuthorizationResponse(
  portal: EmulatedPortal,
  { deviceCode, userCode, issuedAt, expiresAt, interval }: DeviceLogin,
): object {
  const verificationUri = `${portal.issuer()}/oauth2/device`;
  return {
    device_code: deviceCode,
    user_code: userCode,
    verification_uri: verificationUri,
    ...(portal.settings.verificationUriComplete && {
      verification_uri_complete: `${verificationUri}?user_code=${encodeURIComponent(userCode)}`,
    }),
    expires_in: (expiresAt - issuedAt) / 1000,
    interval,
  };
}

/** Serves the verification page (RFC 8628, 3.3): without a user code it asks for one, and then for a login. */
export function serveDevicePage(app: FastifyInstance): void {
  addOAuth2Route(app, '/oauth2/device', 'device', {
    async GET(request, reply) {
      const found = findPrompt(request, reply);
      return 'prompt' in found ? showPrompt(request, reply, found.prompt) : found.page;
    },
    async POST(request, reply) {
      const found = findPrompt(request, reply);
      if ('page' in found) return found.page;
      const { form } = requestContext(request);
      if (form === null) return sendMessage(reply, 400, 'Not valid', 'A part of the form is repeated.');
      return submitPrompt(request, reply, found.prompt, form);
    },
  });
}

const UNKNOWN_CODE_MESSAGE =
  'This code is wrong or has expired. Please compare it with the one that your device shows.';

/** The prompt for the user code of a request, or the page that asks for a code. */
function findPrompt(
  request: FastifyRequest,
  reply: FastifyReply,
): { readonly prompt: LoginPrompt } | { readonly page: FastifyReply } {
  const { portal, query } = requestContext(request);
  const userCode = query?.get('user_code');
  if (userCode === undefined) return { page: sendPage(reply, 200, userCodePage(null)) };
  const found = portal.deviceLogins.findByUserCode(userCode);
  const login = (found?.issuer ?? null) === portal.issuerName ? found : undefined;
  const client = portal.settings.clients.get(login?.clientId ?? '');
  if (login === undefined || client === undefined || !portal.deviceLogins.isWaiting(login)) {
    return { page: sendPage(reply, 400, userCodePage(UNKNOWN_CODE_MESSAGE)) };
  }
  const prompt = {
    client,
    scope: login.scope,
    userCode: login.userCode,
    demands: ANY_LOGIN,
    allow(browserLogin: BrowserLogin) {
      portal.deviceLogins.decide(login, browserLogin);
      return sendMessage(reply, 200, 'Done', `${client.name} now gets access. You can close this page.`);
    },
    deny() {
      portal.deviceLogins.decide(login, { denied: true });
      return sendMessage(reply, 200, 'Refused', `${client.name} does not get access. You can close this page.`);
    },
  };
  return { prompt };
}
