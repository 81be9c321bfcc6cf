import type { FastifyInstance } from 'fastify';
import { received } from './received.ts';
import { tokenRequest } from './token-request.ts';

/** Counts refreshes that begin while another one of the same grant has not been answered. It changes no grant. */
export function countOverlappingRefreshes(app: FastifyInstance): void {
  app.addHook('preHandler', (request, reply, done) => {
    const { form, portal } = received(request);
    const asked = tokenRequest(request);
    if (asked === null || 'problem' in asked.authentication || form?.get('grant_type') !== 'refresh_token')
      return done();
    const grant = portal.grants.ofRefreshToken(asked.authentication.client.id, asked.refreshToken);
    if (grant === null) return done();
    if (grant.inFlight > 0) portal.judge.overlapped(grant);
    grant.inFlight += 1;
    reply.raw.on('close', () => {
      grant.inFlight -= 1;
    });
    done();
  });
}
