import type { Clock } from '../../core/clock.ts';
import type { Log } from '../../core/log.ts';
import { type RateLimitKey, rateLimitKeys } from './rate-limit-keys.ts';
import { type Allowance, type Bucket, Buckets } from './token-bucket.ts';

/** What a {@link ClientRateLimiter} needs. */
export interface RateLimiterContext {
  readonly clock: Clock;
  readonly log: Log;
}

/** Whether something may happen once more; else in how many whole seconds it may. */
export type RateLimitResult = { readonly ok: true } | { readonly ok: false; readonly retryAfter: number };

/** A burst that does not end is logged again after so long, in ms. */
const LOG_INTERVAL = 3_600_000;

/**
 * How often one device may do something that nobody should do often. If it is too much, that is logged once a burst, with the
 * address; a burst has ended when the whole allowance is there again.
 */
export class ClientRateLimiter {
  readonly #event: string;
  readonly #allowance: Allowance;
  readonly #context: RateLimiterContext;
  readonly #buckets = new Buckets();
  /** When a burst was logged that has not ended. */
  readonly #logged = new WeakMap<Bucket, number>();

  /** @param event what is logged, such as `too many failed authentications` */
  constructor(event: string, allowance: Allowance, context: RateLimiterContext) {
    this.#event = event;
    this.#allowance = allowance;
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
  look(address: string): RateLimitResult {
    return this.#check(rateLimitKeys(address), 0);
  }

  #check(keys: readonly RateLimitKey[], count: 0 | 1): RateLimitResult {
    const now = this.#context.clock.now().uptime;
    const buckets: Bucket[] = [];
    // The widest first: whoever has used that up is not remembered by one address after the other.
    for (const { key, weight } of keys) {
      const allowance = { most: weight * this.#allowance.most, every: this.#allowance.every / weight };
      const bucket = this.#buckets.filled(key, allowance, now);
      if (bucket.left >= allowance.most) {
        this.#logged.delete(bucket);
        bucket.refused = 0;
      }
      if (bucket.left < 1) {
        this.#logRefusal(bucket, key, allowance, now);
        return { ok: false, retryAfter: Math.max(1, Math.ceil(((1 - bucket.left) * allowance.every) / 1000)) };
      }
      buckets.push(bucket);
    }
    for (const bucket of buckets) bucket.left -= count;
    return { ok: true };
  }

  #logRefusal(bucket: Bucket, address: string, { most }: Allowance, now: number): void {
    bucket.refused += 1;
    const logged = this.#logged.get(bucket);
    if (logged !== undefined && now - logged < LOG_INTERVAL) return;
    const count = bucket.refused + (logged === undefined ? most : 0);
    this.#context.log.warn(this.#event, { address, count });
    this.#logged.set(bucket, now);
    bucket.refused = 0;
  }
}
