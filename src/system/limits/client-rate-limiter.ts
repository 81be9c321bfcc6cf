import type { Clock } from '../../core/clock.ts';
import type { Log } from '../../core/log.ts';
import { rateLimitKey } from './rate-limit-key.ts';
import { type RateLimit, type TokenBucket, TokenBuckets } from './token-buckets.ts';

/** The dependencies of a {@link ClientRateLimiter}. */
export interface RateLimiterContext {
  readonly clock: Clock;
  readonly log: Log;
}

/** The events that a {@link ClientRateLimiter} may log. */
type RateLimitEvent =
  | 'too_many_failed_authentications'
  | 'too_many_registrations'
  | 'too_many_unknown_user_codes'
  | 'too_many_wrong_setup_codes';

/** Whether an action is allowed; if not, after how many whole seconds it is. */
type RateLimitResult = { readonly ok: true } | { readonly ok: false; readonly retryAfter: number };

/** How often one address may send a wrong code or secret. */
export const WRONG_CODE_LIMIT: RateLimit = { burst: 10, interval: 6000 };

/** Interval at which a burst that does not end is logged again, in ms. */
const LOG_INTERVAL = 3_600_000;

/**
 * Limits how often one address may do something, such as failing to authenticate. Exceeding the limit is logged once
 * per burst; a burst has ended when the bucket is full again.
 */
export class ClientRateLimiter {
  readonly #event: RateLimitEvent;
  readonly #limit: RateLimit;
  readonly #context: RateLimiterContext;
  readonly #buckets = new TokenBuckets();
  /** When the current burst of a bucket was logged, on the boot clock in ms. */
  readonly #logged = new WeakMap<TokenBucket, number>();

  /** @param event to log if the limit is exceeded */
  constructor(event: RateLimitEvent, limit: RateLimit, context: RateLimiterContext) {
    this.#event = event;
    this.#limit = limit;
    this.#context = context;
  }

  /** Counts one action, if it is allowed. @param address of the peer, as reported by its socket */
  take(address: string): RateLimitResult {
    return this.#check(address, 1);
  }

  /** Whether {@link take} would allow an action. Counts nothing. */
  peek(address: string): RateLimitResult {
    return this.#check(address, 0);
  }

  #check(address: string, count: 0 | 1): RateLimitResult {
    const now = this.#context.clock.now().uptime;
    const { burst, interval } = this.#limit;
    const key = rateLimitKey(address);
    const bucket = this.#buckets.refill(key, this.#limit, now);
    if (bucket.tokens >= burst) {
      this.#logged.delete(bucket);
      bucket.rejected = 0;
    }
    if (bucket.tokens < 1) {
      this.#logRejection(bucket, key, now);
      return { ok: false, retryAfter: Math.max(1, Math.ceil(((1 - bucket.tokens) * interval) / 1000)) };
    }
    bucket.tokens -= count;
    return { ok: true };
  }

  #logRejection(bucket: TokenBucket, address: string, now: number): void {
    bucket.rejected += 1;
    const logged = this.#logged.get(bucket);
    if (logged !== undefined && now - logged < LOG_INTERVAL) return;
    const count = bucket.rejected + (logged === undefined ? this.#limit.burst : 0);
    this.#context.log.warn(this.#event, { address, count });
    this.#logged.set(bucket, now);
    bucket.rejected = 0;
  }
}
