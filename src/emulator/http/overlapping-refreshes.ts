import type { FastifyInstance } from 'fastify';
import type { Portal } from '../portal.ts';
import { authenticateClient } from './client-authentication.ts';
import { endpointOf } from './endpoint.ts';
import { formParameters } from './request-form.ts';
import { portalOf } from './settings-of-request.ts';

/** Counts refreshes that begin while another one of the same grant has not been answered. It changes no grant. */
export function countOverlappingRefreshes(app: FastifyInstance, portal: Portal): void {
  app.addHook('preHandler', async (request, reply) => {
    if (endpointOf(request) !== 'token') return;
    const form = formParameters(request);
    const token = form?.get('refresh_token');
    if (form === null || token === undefined || form.get('grant_type') !== 'refresh_token') return;
    const authentication = authenticateClient(portalOf(portal, request).settings, request.headers.authorization, form);
    if ('problem' in authentication) return;
    const grant = portal.grants.ofRefreshToken(authentication.client.id, token);
    if (grant === null) return;
    if (grant.inFlight > 0) portal.judge.overlapped(grant);
    grant.inFlight += 1;
    reply.raw.once('close', () => {
      grant.inFlight -= 1;
    });
  });
}
