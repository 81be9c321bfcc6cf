import type { FastifyInstance } from 'fastify';
import { received } from '../http/received.ts';
import { bearerToken } from '../http/request-form.ts';
import { serve } from '../http/routes.ts';

/**
 * Stands in for the cloud API: 200 `{user, scope}` for a good bearer token in the Authorization header; else, by RFC 6750,
 * section 3, 401 with a challenge, which names an error only where a token was sent, or 400 for a damaged header.
 */
export function serveWhoami(app: FastifyInstance): void {
  serve(app, '/api/whoami', 'whoami', {
    async GET(request, reply) {
      const { portal, authorization: header = '' } = received(request);
      const token = bearerToken(header);
      const grant = token === null ? null : portal.grants.authenticate(token);
      if (grant !== null) return reply.send({ user: grant.user, scope: grant.scope });
      const challenge = (error: string) => reply.header('www-authenticate', `Bearer realm="portal"${error}`);
      if (token !== null) return challenge(', error="invalid_token"').code(401).send({ error: 'invalid_token' });
      if (!/^bearer\b/i.test(header)) return challenge('').code(401).send({ error: 'unauthorized' });
      return challenge(', error="invalid_request"').code(400).send({ error: 'invalid_request' });
    },
  });
}
