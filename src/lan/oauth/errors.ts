import type { FastifyReply, FastifyRequest } from 'fastify';

/**
 * The error codes that the hub uses from RFC 6749 section 5.2, `temporarily_unavailable` from its section 4.1.2.1,
 * those of RFC 8628 section 3.5, `invalid_client_metadata` of RFC 7591 section 3.2.2 and `invalid_token` of RFC 6750
 * section 3.1.
 */
export type OAuthErrorCode =
  | 'access_denied'
  | 'authorization_pending'
  | 'expired_token'
  | 'invalid_client'
  | 'invalid_client_metadata'
  | 'invalid_grant'
  | 'invalid_request'
  | 'invalid_scope'
  | 'invalid_target'
  | 'invalid_token'
  | 'slow_down'
  | 'temporarily_unavailable'
  | 'unauthorized_client'
  | 'unsupported_grant_type';

/** The errors whose usual status is not 400. */
const STATUS_BY_ERROR: Readonly<Partial<Record<OAuthErrorCode, number>>> = {
  invalid_client: 401,
  invalid_token: 401,
  temporarily_unavailable: 503,
};

/**
 * Sends an OAuth error response.
 * @param more `error_uri` if a page can help
 * @param status overrides the error's usual status
 */
export function sendError(
  reply: FastifyReply,
  error: OAuthErrorCode,
  description: string,
  more: { readonly error_uri?: string } = {},
  status = STATUS_BY_ERROR[error] ?? 400,
): FastifyReply {
  // RFC 6749, 5.2: the description may contain %x20-21 / %x23-5B / %x5D-7E.
  const error_description = description.replaceAll(/[^\x20-\x21\x23-\x5b\x5d-\x7e]/g, "'");
  return setNoStore(reply)
    .code(status)
    .send({ error, error_description, ...more });
}

/**
 * Sends a `temporarily_unavailable` error with `Retry-After`.
 * @param retryAfter in whole seconds
 */
export function sendUnavailable(
  reply: FastifyReply,
  retryAfter: number,
  description: string,
  status: 429 | 503 = 503,
): FastifyReply {
  reply.header('retry-after', retryAfter);
  return sendError(reply, 'temporarily_unavailable', description, {}, status);
}

/** `Retry-After` while the hub can't write its store, in seconds. */
const STORE_RETRY_AFTER = 60;

/** Sends the error for a request that the hub can't serve, because it can't write its store. */
export function sendStoreUnwritable(
  reply: FastifyReply,
  description = "the hub cannot write its store at present: see the hub's log",
): FastifyReply {
  return sendUnavailable(reply, STORE_RETRY_AFTER, description);
}

/** Fastify's `errorHandler` for an endpoint: reports malformed requests. @param type the media type that it accepts */
export function createErrorHandler(type: string) {
  return (error: Error & { statusCode?: number }, _request: FastifyRequest, reply: FastifyReply): FastifyReply => {
    if (error.statusCode === 413) return sendError(reply, 'invalid_request', 'the request is too large', {}, 413);
    if (error.statusCode === 415) return sendError(reply, 'invalid_request', `send the request as ${type}`);
    if ((error.statusCode ?? 500) < 500) return sendError(reply, 'invalid_request', 'the request is malformed');
    throw error;
  };
}

/** Responses with or about tokens must not be cached (RFC 6749, 5.1). */
export function setNoStore(reply: FastifyReply): FastifyReply {
  return reply.header('cache-control', 'no-store').header('pragma', 'no-cache');
}
