import type { FastifyInstance } from 'fastify';
import { invalidGrant, invalidRequest, type OAuthError, sendOAuthError } from '../http/oauth-error.ts';
import { requestContext } from '../http/request-context.ts';
import { addOAuth2Route } from '../http/routes.ts';
import { type ClientRequest, readClientRequest } from '../http/token-request.ts';
import type { TokenResponseBody } from '../oauth/issued-grants.ts';
import { rejectCodeVerifier } from '../oauth/pkce.ts';
import type { EmulatedPortal } from '../portal.ts';
import { oauth2TokenResponse } from './oauth2-response.ts';
import { findUnusedCode } from './token.ts';

/** RFC 8628, 3.4. */
export const DEVICE_GRANT_TYPE = 'urn:ietf:params:oauth:grant-type:device_code';

/**
 * Serves the token endpoint of the generic OAuth 2.0 server (RFC 6749, 4.1.3 and 6; RFC 7636, 4.6; RFC 8628, 3.4). It
 * authenticates the client before it uses a code or token.
 */
export function serveOAuth2Token(app: FastifyInstance): void {
  addOAuth2Route(app, '/oauth2/token', 'token', {
    POST(request, reply) {
      const received = readClientRequest(request);
      if ('problem' in received) return sendOAuthError(reply, received.problem);
      const outcome = handleTokenRequest(requestContext(request).portal, received);
      return 'error' in outcome ? sendOAuthError(reply, outcome) : reply.send(oauth2TokenResponse(outcome));
    },
  });
}

function handleTokenRequest(portal: EmulatedPortal, received: ClientRequest): TokenResponseBody | OAuthError {
  const { client, form, refreshToken } = received;
  const { flows } = portal.settings;
  const grantType = form.get('grant_type');
  if (grantType === undefined) return invalidRequest('grant_type is missing');
  if (grantType === 'refresh_token') {
    if (!form.has('refresh_token')) return invalidRequest('refresh_token is missing');
    const outcome = portal.grants.refresh(client.id, refreshToken, portal.settings);
    return 'refused' in outcome ? invalidGrant(outcome.refused) : outcome;
  }
  if (grantType === 'authorization_code' && flows !== 'device') return exchangeCode(portal, received);
  if (grantType === DEVICE_GRANT_TYPE && flows !== 'code') return pollDeviceCode(portal, received);
  return { status: 400, error: 'unsupported_grant_type', description: 'this grant_type is not supported' };
}

/** A code is valid once, with the redirect_uri of its authorization request and the verifier of its challenge. */
function exchangeCode(portal: EmulatedPortal, { client, form }: ClientRequest): TokenResponseBody | OAuthError {
  const code = findUnusedCode(portal, client, form.get('code'));
  if ('error' in code) return code;
  const { oauth2: binding } = code;
  if (binding === undefined) return invalidGrant('unknown code');
  const redirectUri = form.get('redirect_uri');
  if (
    binding.sentRedirectUri ? redirectUri !== code.redirectUri : (redirectUri ?? code.redirectUri) !== code.redirectUri
  ) {
    return invalidGrant('redirect_uri differs from the one of the authorization request');
  }
  const problem = rejectCodeVerifier(binding.challenge, form.get('code_verifier'), portal.settings);
  if (problem !== null) return invalidGrant(problem);
  const grant = portal.grants.create(client.id, code.user, code.scope);
  portal.codes.markExchanged(code, grant.id);
  return portal.grants.issueTokens(grant, portal.settings);
}

/** RFC 8628, 3.5. A device code is valid once. */
function pollDeviceCode(portal: EmulatedPortal, { client, form }: ClientRequest): TokenResponseBody | OAuthError {
  const deviceCode = form.get('device_code');
  if (deviceCode === undefined) return invalidRequest('device_code is missing');
  const { deviceLogins } = portal;
  const login = deviceLogins.find(deviceCode);
  if (login === undefined || login.clientId !== client.id) return invalidGrant('unknown device code');
  if (login.grantId !== null) return invalidGrant('the device code was used before');
  const { decision } = login;
  if (deviceLogins.isExpired(login)) return deviceError('expired_token', 'the device code has expired');
  if (deviceLogins.recordPoll(login)) {
    portal.audit.recordFastPoll(client.id);
    return deviceError('slow_down', `wait ${login.interval} s between two polls`);
  }
  if (decision === null) return deviceError('authorization_pending', 'the user has not decided yet');
  if ('denied' in decision) return deviceError('access_denied', 'the user has refused');
  const problem = rejectCodeVerifier(login.challenge, form.get('code_verifier'), portal.settings);
  if (problem !== null) return invalidGrant(problem);
  const grant = portal.grants.create(client.id, decision.user, login.scope);
  deviceLogins.markExchanged(login, grant.id);
  return portal.grants.issueTokens(grant, portal.settings);
}

function deviceError(error: OAuthError['error'], description: string): OAuthError {
  return { status: 400, error, description };
}
