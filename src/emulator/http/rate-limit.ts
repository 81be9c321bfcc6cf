import type { FastifyInstance } from 'fastify';
import type { Endpoint } from './endpoint.ts';
import { type Received, received } from './received.ts';
import { bearerToken } from './request-form.ts';

/** What a client's program calls. The pages that people open are not limited. */
const LIMITED: readonly (Endpoint | null)[] = ['config', 'code/get', 'token', 'whoami'];

/**
 * Answers 429 with Retry-After (RFC 6585, 4) where a client has sent too many requests of one kind, and does nothing for
 * them. A bearer token counts for the client that it was issued to; requests that name nobody count together.
 */
export function limitRates(app: FastifyInstance): void {
  app.addHook('preHandler', (request, reply, done) => {
    const came = received(request);
    const { rateLimit, rateLimitWindow } = came.portal.settings;
    if (rateLimit === 0 || !LIMITED.includes(came.endpoint)) return done();
    const key = `${came.endpoint} ${caller(came)}`;
    const wait = came.portal.rates.count(key, rateLimit, rateLimitWindow, came.portal.now());
    if (wait === 0) return done();
    reply.code(429).header('retry-after', String(wait)).send({ error: 'too_many_requests' });
  });
}

function caller(came: Received): string {
  const { grants } = came.portal;
  const token = bearerToken(came.authorization ?? '');
  const grant = token === null ? null : grants.authenticate(token);
  return came.client ?? grant?.clientId ?? '';
}
