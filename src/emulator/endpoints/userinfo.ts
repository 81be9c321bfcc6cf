import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { authenticateBearer } from '../http/bearer-authentication.ts';
import { requestContext } from '../http/request-context.ts';
import { addOAuth2Route } from '../http/routes.ts';
import { userClaims } from '../oauth/grant-tokens.ts';

/** Serves the claims about the user of an access token with the scope `openid` (OpenID Connect Core, 5.3). */
export function serveUserinfo(app: FastifyInstance): void {
  addOAuth2Route(app, '/oauth2/userinfo', 'userinfo', { GET: sendClaims, POST: sendClaims });
}

async function sendClaims(request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply> {
  const found = await authenticateBearer(request, reply);
  if (found === null) return reply;
  if (found.scope?.split(' ').includes('openid') !== true) {
    const challenge = 'Bearer realm="portal", error="insufficient_scope", scope="openid"';
    return reply.header('www-authenticate', challenge).code(403).send({ error: 'insufficient_scope' });
  }
  return reply.send(userClaims(found.grant.user, found.scope, requestContext(request).portal.settings));
}
