import type { FastifyReply } from 'fastify';
import type { OAuthErrorName } from '../oauth/authorization-request.ts';

/** An error response of the token or revocation endpoint (RFC 6749, 5.2; RFC 7009, 2.2.1). */
export interface OAuthError {
  readonly status: 400 | 401 | 403;
  readonly error: OAuthErrorName;
  readonly description: string;
  /** Whether the client used the Authorization header, so that the response must name the scheme accepted there. */
  readonly challenge?: boolean;
  /** Why authentication failed, for the findings, if the description does not say it. */
  readonly reason?: string;
}

export function invalidRequest(description: string): OAuthError {
  return { status: 400, error: 'invalid_request', description };
}

export function invalidGrant(description: string): OAuthError {
  return { status: 400, error: 'invalid_grant', description };
}

/** Sends an error response of the token or revocation endpoint, whose description has no `"` and no `\` (RFC 6749, 5.2). */
export function sendOAuthError(reply: FastifyReply, problem: OAuthError): FastifyReply {
  if (problem.challenge === true) reply.header('www-authenticate', 'Basic realm="portal", charset="UTF-8"');
  return reply.code(problem.status).send({
    error: problem.error,
    error_description: problem.description.replace(/[^\x20\x21\x23-\x5b\x5d-\x7e]/g, '?'),
  });
}

export function authenticationError(
  description: string,
  challenge = false,
  reason = description,
): { readonly problem: OAuthError } {
  return { problem: { status: 401, error: 'invalid_client', description, challenge, reason } };
}
