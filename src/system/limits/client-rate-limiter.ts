import type { Clock } from '../../core/clock.ts';
import type { Log } from '../../core/log.ts';
import { type RateLimitKey, rateLimitKeys } from './rate-limit-keys.ts';
import { type RateLimit, type TokenBucket, TokenBuckets } from './token-bucket.ts';

/** What a {@link ClientRateLimiter} needs. */
export interface RateLimiterContext {
  readonly clock: Clock;
  readonly log: Log;
}

/** What a {@link ClientRateLimiter} logs. */
type RateLimitEvent = 'too_many_failed_authentications' | 'too_many_registrations' | 'too_many_unknown_user_codes';

/** Whether something may happen once more; else in how many whole seconds it may. */
export type RateLimitResult = { readonly ok: true } | { readonly ok: false; readonly retryAfter: number };

/** A burst that does not end is logged again after so long, in ms. */
const LOG_INTERVAL = 3_600_000;

/**
 * How often one device may do something that nobody should do often. If it is too much, that is logged once a burst, with the
 * address; a burst has ended when the bucket is full again.
 */
export class ClientRateLimiter {
  readonly #event: RateLimitEvent;
  readonly #limit: RateLimit;
  readonly #context: RateLimiterContext;
  readonly #buckets = new TokenBuckets();
  /** When a burst was logged that has not ended. */
  readonly #logged = new WeakMap<TokenBucket, number>();

  /** @param event what is logged */
  constructor(event: RateLimitEvent, limit: RateLimit, context: RateLimiterContext) {
    this.#event = event;
    this.#limit = limit;
    this.#context = context;
  }

  /**
   * Counts that it happens.
   * @param address of the peer, as its socket has it
   * @param keys what it is counted by, the widest first
   */
  take(address: string, keys: readonly RateLimitKey[] = rateLimitKeys(address)): RateLimitResult {
    return this.#check(keys, 1);
  }

  /** Counts nothing: whether {@link take} would allow it. */
  peek(address: string): RateLimitResult {
    return this.#check(rateLimitKeys(address), 0);
  }

  #check(keys: readonly RateLimitKey[], count: 0 | 1): RateLimitResult {
    const now = this.#context.clock.now().uptime;
    const buckets: TokenBucket[] = [];
    // The widest first: whoever has used that up is not remembered by one address after the other.
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
