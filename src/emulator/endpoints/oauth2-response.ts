import type { FastifyReply } from 'fastify';
import { FORM_MEDIA_TYPE } from '../../system/http/form.ts';
import { type OAuthError, sendOAuthError } from '../http/oauth-error.ts';
import type { TokenResponseBody } from '../oauth/issued-grants.ts';
import type { Settings } from '../settings/settings.ts';

/** A successful token request. */
export interface IssuedTokens {
  readonly tokens: TokenResponseBody;
  /** Whether the response contains the refresh token. */
  readonly withRefreshToken: boolean;
  readonly user: string;
}

/**
 * Sends the token response of `/oauth2/token` (RFC 6749, 5.1), as the settings change it. Without a granted scope it has
 * none, because null is no scope.
 */
export function sendTokens(
  reply: FastifyReply,
  { tokens, withRefreshToken, user }: IssuedTokens,
  settings: Settings,
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
export function sendTokenError(reply: FastifyReply, problem: OAuthError, settings: Settings): FastifyReply {
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
