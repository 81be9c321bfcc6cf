import type { FastifyInstance } from 'fastify';
import { authenticationError, invalidRequest, sendOAuthError } from '../http/oauth-error.ts';
import { requestContext } from '../http/request-context.ts';
import { addOAuth2Route } from '../http/routes.ts';
import { readClientRequest } from '../http/token-request.ts';
import { subjectOf } from '../oauth/grant-tokens.ts';
import { isIssuedBy } from '../oauth/issuers.ts';
import { isPublic } from '../settings/client-registry.ts';

/**
 * Serves token introspection (RFC 7662) to every client with a secret or keys, which authenticates as at the token
 * endpoint. It ignores `token_type_hint`, because it recognises both kinds of tokens without it.
 */
export function serveIntrospection(app: FastifyInstance): void {
  addOAuth2Route(app, '/oauth2/introspect', 'introspect', {
    async POST(request, reply) {
      const received = await readClientRequest(request, reply);
      if ('problem' in received) return sendOAuthError(reply, received.problem);
      const { portal } = requestContext(request);
      const { grants, settings, origins } = portal;
      // RFC 7662, 2.1: without authentication everybody could try out tokens.
      if (isPublic(received.client) || settings.clientAuthentication === 'none')
        return sendOAuthError(reply, authenticationError('a public client may not inspect tokens').problem);
      const token = received.form.get('token');
      if (token === undefined) return sendOAuthError(reply, invalidRequest('token is missing'));
      const found = grants.inspect(token, settings);
      if (found === null || !isIssuedBy(portal, found.grant)) return reply.send({ active: false });
      const { grant, scope, issuedAt, expiresAt, jkt } = found;
      return reply.send({
        active: true,
        iss: portal.issuer(),
        sub: subjectOf(grant.user, settings),
        username: grant.user,
        client_id: grant.clientId,
        ...(scope !== null && { scope }),
        ...(grant.oauth2?.actor !== undefined && { act: { sub: grant.oauth2.actor } }),
        ...(jkt !== undefined && { cnf: { jkt } }),
        iat: Math.floor(issuedAt / 1000),
        ...(expiresAt !== null && {
          exp: Math.floor(expiresAt / 1000),
          aud: grant.oauth2?.resource ?? origins().base,
          token_type: jkt === undefined ? 'Bearer' : 'DPoP',
        }),
      });
    },
  });
}
