import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { invalidGrant, invalidRequest, sendOAuthError } from '../http/oauth-error.ts';
import { requestContext } from '../http/request-context.ts';
import { addOAuth2Route, addRoute } from '../http/routes.ts';
import { readClientRequest, unmetOfRequest } from '../http/token-request.ts';

/**
 * Serves the revocation endpoint (RFC 7009), which a portal may have (docs/portal.md). Client authentication is that of
 * the token endpoint. It ignores `token_type_hint`, because it recognises both kinds of tokens without it.
 */
export function serveRevocation(app: FastifyInstance): void {
  addRoute(app, '/oauth2/revoke', 'revoke', { POST: revoke });
}

/** Serves the revocation endpoint of the generic OAuth 2.0 server, with the client authentication of `/oauth2/token`. */
export function serveOAuth2Revocation(app: FastifyInstance): void {
  addOAuth2Route(app, '/oauth2/revoke', 'revoke', { POST: revoke });
}

function revoke(request: FastifyRequest, reply: FastifyReply): FastifyReply {
  const received = readClientRequest(request);
  if ('problem' in received) return sendOAuthError(reply, received.problem);
  const unmet = requestContext(request).oauth2 ? unmetOfRequest(request, 'revoke', received) : null;
  if (unmet !== null) return sendOAuthError(reply, invalidRequest(unmet));
  const token = received.form.get('token');
  if (token === undefined) return sendOAuthError(reply, invalidRequest('token is missing'));
  const { grants } = requestContext(request).portal;
  if (!grants.revokeToken(received.client.id, token))
    return sendOAuthError(reply, invalidGrant('the token was issued to another client'));
  return reply.send();
}
