import type { FastifyInstance, FastifyRequest } from 'fastify';
import type { Portal } from '../portal.ts';
import { type Endpoint, endpointOf } from './endpoint.ts';
import { bearerToken, clientOf } from './request-form.ts';
import { portalOf } from './settings-of-request.ts';

/** What a client's program calls. The pages that people open are not limited. */
const LIMITED: readonly (Endpoint | null)[] = ['config', 'code/get', 'token', 'whoami'];

/**
 * Answers 429 with Retry-After (RFC 6585, 4) where a client has sent too many requests of one kind, and does nothing for
 * them. A bearer token counts for the client that it was issued to; requests that name nobody count together.
 */
export function limitRates(app: FastifyInstance, standing: Portal): void {
  app.addHook('preHandler', async (request, reply) => {
    const portal = portalOf(standing, request);
    const { rateLimit, rateLimitWindow } = portal.settings;
    const endpoint = endpointOf(request);
    if (rateLimit === 0 || !LIMITED.includes(endpoint)) return;
    const key = `${endpoint} ${caller(portal, request)}`;
    const wait = portal.rates.count(key, rateLimit, rateLimitWindow, portal.now());
    if (wait > 0) await reply.code(429).header('retry-after', String(wait)).send({ error: 'too_many_requests' });
  });
}

function caller(portal: Portal, request: FastifyRequest): string {
  const token = bearerToken(request.headers.authorization ?? '');
  const grant = token === null ? null : portal.grants.authenticate(token);
  return clientOf(request, portal.settings.clients) ?? grant?.clientId ?? '';
}
