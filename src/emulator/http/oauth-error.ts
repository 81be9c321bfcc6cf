import type { FastifyReply } from 'fastify';

/** RFC 6749, 5.2; RFC 8628, 3.5; OpenID Connect Core, 3.1.2.6. */
export type OAuthErrorName =
  | 'invalid_request'
  | 'invalid_client'
  | 'invalid_grant'
  | 'invalid_scope'
  | 'invalid_target'
  | 'request_not_supported'
  | 'request_uri_not_supported'
  | 'unauthorized_client'
  | 'unsupported_grant_type'
  | 'unsupported_response_type'
  | 'authorization_pending'
  | 'slow_down'
  | 'access_denied'
  | 'expired_token'
  | 'invalid_dpop_proof'
  | 'use_dpop_nonce';

/** An error response of the token or revocation endpoint (RFC 6749, 5.2; RFC 7009, 2.2.1). */
export interface OAuthError {
  readonly status: 400 | 401 | 403;
  readonly error: OAuthErrorName;
  readonly description: string;
  /** Whether the client used the Authorization header, so that the response must name the scheme accepted there. */
  readonly challenge?: boolean;
}

export function invalidRequest(description: string): OAuthError {
  return { status: 400, error: 'invalid_request', description };
}

export function invalidGrant(description: string): OAuthError {
  return { status: 400, error: 'invalid_grant', description };
}

/** Sends an error response of the token or revocation endpoint. */
export function sendOAuthError(reply: FastifyReply, problem: OAuthError): FastifyReply {
  if (problem.challenge === true) reply.header('www-authenticate', 'Basic realm="portal", charset="UTF-8"');
  return reply.code(problem.status).send({ error: problem.error, error_description: problem.description });
}

export function authenticationError(description: string, challenge = false): { readonly problem: OAuthError } {
  return { problem: { status: 401, error: 'invalid_client', description, challenge } };
}
