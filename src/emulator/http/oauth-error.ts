import type { FastifyReply } from 'fastify';

/** An error answer of the token endpoint (RFC 6749, 5.2). */
export interface OAuthError {
  readonly status: 400 | 401;
  readonly error: 'invalid_request' | 'invalid_client' | 'invalid_grant' | 'invalid_scope' | 'unsupported_grant_type';
  readonly description: string;
  /** The client tried the Authorization header, so the answer has to name the scheme that works there. */
  readonly challenge?: boolean;
}

/** Sends an error answer of the token endpoint. */
export function sendOAuthError(reply: FastifyReply, problem: OAuthError): FastifyReply {
  if (problem.challenge === true) reply.header('www-authenticate', 'Basic realm="portal", charset="UTF-8"');
  return reply.code(problem.status).send({ error: problem.error, error_description: problem.description });
}
