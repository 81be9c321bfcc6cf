import type { FastifyInstance } from 'fastify';
import { SCRIPTED_ENDPOINTS } from './cors.ts';
import type { Endpoint } from './logged-request.ts';
import { accessToken, type RequestContext, requestContext } from './request-context.ts';

/** The endpoints that programs call. Pages that people open are not limited. */
const LIMITED_ENDPOINTS: readonly (Endpoint | null)[] = ['config', 'code/get', ...SCRIPTED_ENDPOINTS];

/**
 * Answers 429 with Retry-After (RFC 6585, 4) if a client has sent too many requests of one kind, and does not process
 * them. An access token counts for the client that it was issued to; requests without a known client count together.
 */
export function limitRates(app: FastifyInstance): void {
  app.addHook('preHandler', (request, reply, done) => {
    const context = requestContext(request);
    const { endpoint, oauth2, form, portal } = context;
    const { rateLimit, rateLimitWindow, refreshesPerMinute } = portal.settings;
    const isRefresh = oauth2 && endpoint === 'token' && form?.get('grant_type') === 'refresh_token';
    const isLimited = rateLimit > 0 && LIMITED_ENDPOINTS.includes(endpoint);
    const wait = Math.max(
      isLimited ? countRequest(context, `${endpoint}`, rateLimit, rateLimitWindow) : 0,
      isRefresh && refreshesPerMinute > 0 ? countRequest(context, 'refresh', refreshesPerMinute, 60) : 0,
    );
    if (wait === 0) return done();
    reply.code(429).header('retry-after', String(wait)).send({ error: 'too_many_requests' });
  });
}

/** Counts a request of a kind. @param seconds length of the window @returns the seconds to wait if it exceeds the limit, otherwise 0 */
function countRequest(context: RequestContext, kind: string, limit: number, seconds: number): number {
  const { now, rateWindows } = context.portal;
  const key = `${kind} ${callerKey(context)}`;
  let window = rateWindows.get(key);
  if (window === undefined || now() >= window.openedAt + 1000 * seconds || now() < window.openedAt) {
    window = { openedAt: now(), count: 0 };
    rateWindows.set(key, window);
  }
  window.count += 1;
  return window.count <= limit ? 0 : Math.ceil((window.openedAt + 1000 * seconds - now()) / 1000);
}

function callerKey(context: RequestContext): string {
  const { grants, settings } = context.portal;
  const access = accessToken(context.authorization ?? '');
  const found = access === null ? null : grants.inspectAccessToken(access.token, settings);
  return context.client ?? found?.grant.clientId ?? '';
}
