import type { Clock } from '../../core/clock.ts';
import type { Log } from '../../core/log.ts';
import { type RateLimitKey, rateLimitKeys } from './rate-limit-keys.ts';
import { type RateLimit, type TokenBucket, TokenBuckets } from './token-bucket.ts';

/** The dependencies of a {@link ClientRateLimiter}. */
export interface RateLimiterContext {
  readonly clock: Clock;
  readonly log: Log;
}

/** The events that a {@link ClientRateLimiter} may log. */
type RateLimitEvent = 'too_many_failed_authentications' | 'too_many_registrations' | 'too_many_unknown_user_codes';

/** Whether an action is allowed; if not, after how many whole seconds it is. */
export type RateLimitResult = { readonly ok: true } | { readonly ok: false; readonly retryAfter: number };

/** Interval at which a burst that does not end is logged again, in ms. */
const LOG_INTERVAL = 3_600_000;

/**
 * Limits how often one device may do something, such as failing to authenticate. Exceeding the limit is logged once per
 * burst, with the key of the bucket; a burst has ended when the bucket is full again.
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

  /**
   * Counts one action, if it is allowed.
   * @param address of the peer, as reported by its socket
   * @param keys that the action counts for, the widest first
   */
  take(address: string, keys: readonly RateLimitKey[] = rateLimitKeys(address)): RateLimitResult {
    return this.#check(keys, 1);
  }

  /** Whether {@link take} would allow an action. Counts nothing. */
  peek(address: string): RateLimitResult {
    return this.#check(rateLimitKeys(address), 0);
  }

  #check(keys: readonly RateLimitKey[], count: 0 | 1): RateLimitResult {
    const now = this.#context.clock.now().uptime;
    const buckets: TokenBucket[] = [];
    // The widest first: a network that has exceeded its limit creates no further buckets, whatever addresses it uses.
    for (const { key, weight } of keys) {
      const limit = { burst: weight * this.#limit.burst, interval: this.#limit.interval / weight };
      const bucket = this.#buckets.refill(key, limit, now);
      if (bucket.tokens >= limit.burst) {
        this.#logged.delete(bucket);
        bucket.rejected = 0;
      }
      if (bucket.tokens < 1) {
        this.#logRejection(bucket, key, limit, now);
        return { ok: false, retryAfter: Math.max(1, Math.ceil(((1 - bucket.tokens) * limit.interval) / 1000)) };
      }
      buckets.push(bucket);
    }
    for (const bucket of buckets) bucket.tokens -= count;
    return { ok: true };
  }

  #logRejection(bucket: TokenBucket, address: string, { burst }: RateLimit, now: number): void {
    bucket.rejected += 1;
    const logged = this.#logged.get(bucket);
    if (logged !== undefined && now - logged < LOG_INTERVAL) return;
    const count = bucket.rejected + (logged === undefined ? burst : 0);
    this.#context.log.warn(this.#event, { address, count });
    this.#logged.set(bucket, now);
    bucket.rejected = 0;
  }
}
