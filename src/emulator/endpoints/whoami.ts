import type { FastifyInstance } from 'fastify';
import { serve } from '../http/server.ts';
import { portalOf } from '../http/settings-of-request.ts';
import type { Portal } from '../portal.ts';

/** Stands in for the cloud API: 200 `{user, scope}` for a good bearer token, else 401 (RFC 6750, 3). */
export function serveWhoami(app: FastifyInstance, standing: Portal): void {
  serve(app, '/api/whoami', 'whoami', {
    async GET(request, reply) {
      const portal = portalOf(standing, request);
      const token = /^bearer +([\w.~+/=-]+) *$/i.exec(request.headers.authorization ?? '')?.[1];
      const grant = token === undefined ? null : portal.grants.authenticate(token);
      if (grant !== null) return reply.send({ user: grant.user, scope: grant.scope });
      const challenge = token === undefined ? '' : ', error="invalid_token"';
      reply.code(401).header('www-authenticate', `Bearer realm="portal"${challenge}`);
      return reply.send(token === undefined ? { error: 'unauthorized' } : { error: 'invalid_token' });
    },
  });
}
