import type { FastifyInstance } from 'fastify';
import { BoundedMap } from '../memory/bounded-collections.ts';
import type { Endpoint } from './logged-request.ts';
import { type RequestContext, requestContext } from './request-context.ts';
import { bearerToken } from './request-form.ts';

/** What a client's program calls. The pages that people open are not limited. */
const LIMITED_ENDPOINTS: readonly (Endpoint | null)[] = ['config', 'code/get', 'token', 'whoami'];

/** Clients and endpoint kinds that are counted at a time. */
const MAX_WINDOWS = 10_000;

/** Requests since a window was opened, by the emulator's clock. */
interface RateWindow {
  readonly openedAt: number;
  count: number;
}

/** Counts requests by client and endpoint kind, in windows that the first request opens. */
export class RateLimiter {
  #windows = new BoundedMap<RateWindow>(MAX_WINDOWS);

  /**
   * Answers 429 with Retry-After (RFC 6585, 4) where a client has sent too many requests of one kind, and does nothing for
   * them. A bearer token counts for the client that it was issued to; requests that name nobody count together.
   */
  attach(app: FastifyInstance): void {
    app.addHook('preHandler', (request, reply, done) => {
      const came = requestContext(request);
      if (came.portal.settings.rateLimit === 0 || !LIMITED_ENDPOINTS.includes(came.endpoint)) return done();
      const wait = this.#countRequest(came);
      if (wait === 0) return done();
      reply.code(429).header('retry-after', String(wait)).send({ error: 'too_many_requests' });
    });
  }

  /** Begins to count anew. */
  reset(): void {
    this.#windows = new BoundedMap<RateWindow>(MAX_WINDOWS);
  }

  /** Counts a request. @returns the seconds to wait where it is one too many, else 0 */
  #countRequest(came: RequestContext): number {
    const { rateLimit, rateLimitWindow } = came.portal.settings;
    const key = `${came.endpoint} ${callerKey(came)}`;
    const now = came.portal.now();
    let open = this.#windows.get(key);
    if (open === undefined || now >= open.openedAt + 1000 * rateLimitWindow || now < open.openedAt) {
      open = { openedAt: now, count: 0 };
      this.#windows.set(key, open);
    }
    open.count += 1;
    return open.count <= rateLimit ? 0 : Math.ceil((open.openedAt + 1000 * rateLimitWindow - now) / 1000);
  }
}

function callerKey(came: RequestContext): string {
  const { grants } = came.portal;
  const token = bearerToken(came.authorization ?? '');
  const grant = token === null ? null : grants.authenticate(token);
  return came.client ?? grant?.clientId ?? '';
}
