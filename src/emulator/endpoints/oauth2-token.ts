import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { FORM_MEDIA_TYPE } from '../../system/http/form.ts';
import { DEVICE_GRANT_TYPE, EXCHANGE_GRANT_TYPE, supportedGrantTypes } from '../grant-types.ts';
import { invalidGrant, invalidRequest, type OAuthError, sendOAuthError } from '../http/oauth-error.ts';
import { requestContext } from '../http/request-context.ts';
import { addOAuth2Route } from '../http/routes.ts';
import { type ClientRequest, readClientRequest, unmetOfRequest } from '../http/token-request.ts';
import { redirectProblem } from '../oauth/authorization-request.ts';
import { isResource } from '../oauth/grant-tokens.ts';
import type { IssuedGrant, TokenResponseBody } from '../oauth/issued-grants.ts';
import { isIssuedBy } from '../oauth/issuers.ts';
import { readNarrowerScope, readRequestedScope, rejectCodeVerifier } from '../oauth/oauth2-authorization-request.ts';
import type { EmulatedPortal } from '../portal.ts';
import { isPublic } from '../settings/client-registry.ts';
import type { Settings } from '../settings/settings.ts';
import { findUnusedCode } from './token.ts';
import { exchangeToken } from './token-exchange.ts';

/**
 * Serves the token endpoint of the generic OAuth 2.0 server (RFC 6749, 4.1.3 and 6; RFC 7636, 4.6; RFC 8628, 3.4). It
 * authenticates the client before it uses a code or token.
 */
export function serveOAuth2Token(app: FastifyInstance): void {
  addOAuth2Route(app, '/oauth2/token', 'token', {
    async POST(request, reply) {
      const { portal } = requestContext(request);
      const received = await readClientRequest(request, reply);
      const outcome = 'problem' in received ? received.problem : handleTokenRequest(request, portal, received);
      return 'error' in outcome ? sendTokenError(reply, outcome, portal.settings) : sendTokens(reply, outcome, portal);
    },
  });
}

/** The operation of each grant, which settings may require parameters of. */
const OPERATIONS = {
  authorization_code: 'code',
  device_code: 'poll',
  refresh_token: 'refresh',
  client_credentials: 'client',
  token_exchange: null,
} as const;

function handleTokenRequest(
  request: FastifyRequest,
  portal: EmulatedPortal,
  received: ClientRequest,
): IssuedTokens | OAuthError {
  const { client, form, refreshToken, jkt } = received;
  const grantType = form.get('grant_type');
  if (grantType === undefined) return invalidRequest('grant_type is missing');
  const grant = supportedGrant(grantType, portal.settings);
  if (grant === null) {
    const description = `grant_type must be one of ${supportedGrantTypes(portal.settings).join(', ')}`;
    return { status: 400, error: 'unsupported_grant_type', description };
  }
  const operation = OPERATIONS[grant];
  const unmet = operation === null ? null : unmetOfRequest(request, operation, received);
  if (unmet !== null) return invalidRequest(unmet);
  const resource = form.get('resource');
  if (resource !== undefined && !isResource(resource))
    return { status: 400, error: 'invalid_target', description: 'resource must be an absolute URI' };
  if (grant === 'authorization_code') return exchangeCode(portal, received);
  if (grant === 'device_code') return pollDeviceCode(portal, received);
  if (grant === 'client_credentials' || grant === 'token_exchange') {
    if (isPublic(client))
      return { status: 400, error: 'unauthorized_client', description: 'a public client may not use this grant_type' };
    return grant === 'client_credentials' ? grantToClient(portal, received) : exchangeToken(portal, received);
  }
  if (!form.has('refresh_token')) return invalidRequest('refresh_token is missing');
  const grantOfToken = portal.grants.findByRefreshToken(client.id, refreshToken);
  if (refreshToken === null || grantOfToken === null || !isIssuedBy(portal, grantOfToken))
    return invalidGrant(portal.grants.explainUnknownRefreshToken(form.get('refresh_token')));
  const isBound = isPublic(client) && refreshToken.jkt !== undefined;
  if (isBound && refreshToken.jkt !== jkt) return invalidGrant('the refresh token is bound to another key');
  const wanted = readNarrowerScope(form.get('scope'), grantOfToken.scope, portal.settings);
  if ('refused' in wanted) return { status: 400, error: 'invalid_scope', description: wanted.refused };
  const scope = (form.has('scope') ? wanted.scope : null) ?? undefined;
  const tokens = portal.grants.refresh(grantOfToken, refreshToken, portal.settings, { jkt, scope });
  if ('refused' in tokens) return invalidGrant(tokens.refused);
  return { tokens, withRefreshToken: portal.settings.refreshTokenInRefresh, user: grantOfToken.user };
}

/** The grant of a grant_type, or null if it is not supported or turned off. */
function supportedGrant(grantType: string, { flows, deviceGrantType }: Settings): keyof typeof OPERATIONS | null {
  if (grantType === 'refresh_token') return grantType;
  if (grantType === 'client_credentials') return flows === 'all' ? grantType : null;
  if (grantType === EXCHANGE_GRANT_TYPE) return flows === 'all' ? 'token_exchange' : null;
  if (grantType === 'authorization_code') return flows === 'device' ? null : grantType;
  const isDevice =
    (grantType === DEVICE_GRANT_TYPE && deviceGrantType !== 'device_code') ||
    (grantType === 'device_code' && deviceGrantType !== 'urn');
  return isDevice && flows !== 'code' ? 'device_code' : null;
}

/** A code is valid once, with the redirect_uri of its authorization request and the verifier of its challenge. */
function exchangeCode(portal: EmulatedPortal, { client, form, jkt }: ClientRequest): IssuedTokens | OAuthError {
  const code = findUnusedCode(portal, client, form.get('code'));
  if ('error' in code) return code;
  const { oauth2: binding } = code;
  if (binding === undefined) return invalidGrant('unknown code');
  const redirectUri = form.get('redirect_uri');
  if (
    binding.sentRedirectUri ? redirectUri !== code.redirectUri : (redirectUri ?? code.redirectUri) !== code.redirectUri
  ) {
    return invalidGrant(redirectProblem(redirectUri, code.redirectUri));
  }
  const problem = rejectCodeVerifier(binding.challenge, form.get('code_verifier'), portal.settings);
  if (problem !== null) return invalidGrant(problem);
  if (binding.jkt !== undefined && binding.jkt !== jkt) return invalidGrant('the code is bound to another key');
  const grant = portal.grants.create(client.id, code.user, code.scope, {
    issuer: portal.issuerName,
    nonce: binding.nonce,
    resource: form.get('resource') ?? binding.resource,
    loggedInAt: binding.loggedInAt ?? code.issuedAt,
  });
  code.grantId = grant.id;
  return issueFirstTokens(portal, grant, binding.offline, jkt);
}

/** RFC 8628, 3.5. A device code is valid once. */
function pollDeviceCode(portal: EmulatedPortal, { client, form, jkt }: ClientRequest): IssuedTokens | OAuthError {
  const deviceCode = form.get('device_code');
  if (deviceCode === undefined) return invalidRequest('device_code is missing');
  const { deviceLogins } = portal;
  const login = deviceLogins.find(deviceCode);
  const isOwn = login?.clientId === client.id && (login.issuer ?? null) === portal.issuerName;
  if (login === undefined || !isOwn) return invalidGrant('unknown device code');
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
  const { user, loggedInAt = portal.now() } = decision;
  const grant = portal.grants.create(client.id, user, login.scope, {
    issuer: portal.issuerName,
    resource: form.get('resource'),
    loggedInAt,
  });
  login.grantId = grant.id;
  return issueFirstTokens(portal, grant, login.offline, jkt);
}

/** RFC 6749, 4.4: an access token for the client itself, without a refresh token. */
function grantToClient(portal: EmulatedPortal, { client, form, jkt }: ClientRequest): IssuedTokens | OAuthError {
  const requested = readRequestedScope(form.get('scope'), portal.settings);
  if ('refused' in requested) return { status: 400, error: 'invalid_scope', description: requested.refused };
  const grant = portal.grants.create(client.id, client.id, requested.scope, {
    issuer: portal.issuerName,
    resource: form.get('resource'),
  });
  const tokens = portal.grants.issueTokens(grant, portal.settings, jkt);
  return { tokens, withRefreshToken: false, user: client.id };
}

/** @param offline whether the login asked for offline access */
function issueFirstTokens(
  { grants, settings }: EmulatedPortal,
  grant: IssuedGrant,
  offline: boolean,
  jkt: string | null,
): IssuedTokens {
  const tokens = grants.issueTokens(grant, settings, jkt);
  return { tokens, withRefreshToken: offline || settings.refreshTokenIssue === 'always', user: grant.user };
}

function deviceError(error: OAuthError['error'], description: string): OAuthError {
  return { status: 400, error, description };
}

/** A successful token request. */
interface IssuedTokens {
  readonly tokens: TokenResponseBody;
  /** Whether the response contains the refresh token. */
  readonly withRefreshToken: boolean;
  readonly user: string;
}

/**
 * Sends the token response of `/oauth2/token` (RFC 6749, 5.1), as the settings change it. Without a granted scope it has
 * none, because null is no scope.
 */
function sendTokens(
  reply: FastifyReply,
  { tokens, withRefreshToken, user }: IssuedTokens,
  { settings, issuedSecrets }: EmulatedPortal,
): FastifyReply {
  const { scope, refresh_token, token_type, expires_in, ...rest } = tokens;
  const body = {
    ...rest,
    expires_in: settings.expiresInType === 'string' ? String(expires_in) : expires_in,
    ...(settings.tokenTypeInResponse && { token_type }),
    ...(scope !== null && { scope: settings.scopeSeparator === 'comma' ? scope.replaceAll(' ', ',') : scope }),
    ...(withRefreshToken && { refresh_token }),
    ...(settings.accountMember !== null && { [settings.accountMember]: user }),
  };
  issuedSecrets.recordTokens(body);
  if (settings.tokenFormat === 'form') {
    const members = Object.entries(body).map(([name, value]): [string, string] => [name, String(value)]);
    return reply.type(FORM_MEDIA_TYPE).send(new URLSearchParams(members).toString());
  }
  return reply.send(settings.tokenEnvelope === 'body' ? { status: 0, body } : body);
}

/** Statuses inside an envelope. */
const CREDENTIALS_REFUSED = 401;
const INVALID_PARAMETERS = 503;

/** Sends the error response of `/oauth2/token` (RFC 6749, 5.2; RFC 8628, 3.5), as the settings change it. */
function sendTokenError(reply: FastifyReply, problem: OAuthError, settings: Settings): FastifyReply {
  if (settings.tokenEnvelope === 'body') {
    const isCredential = problem.error === 'invalid_client' || problem.error === 'invalid_grant';
    const status = isCredential ? CREDENTIALS_REFUSED : INVALID_PARAMETERS;
    return reply.send({ status, body: {}, error: `${problem.error}: ${problem.description}` });
  }
  if (problem.error === 'invalid_grant' && settings.invalidGrantStatus === '401') {
    return sendOAuthError(reply, { ...problem, status: 401 });
  }
  if (problem.error === 'authorization_pending' && settings.pendingStatus === '403') {
    return sendOAuthError(reply, { ...problem, status: 403 });
  }
  return sendOAuthError(reply, problem);
}
