/** A rate limit: `burst` times at once, and once more every `interval` ms. */
export interface RateLimit {
  readonly burst: number;
  readonly interval: number;
}

/** Largest number of buckets; a further one replaces the one that was created first. */
const MAX_KEYS = 20_000;

/** The state of a rate limit. */
export interface TokenBucket {
  tokens: number;
  /** In ms, on the clock of the caller. */
  refilledAt: number;
  /** How many times the limit was exceeded; the caller counts and resets it. */
  rejected: number;
}

/** Token buckets by key, in bounded memory. */
export class TokenBuckets {
  readonly #buckets = new Map<string, TokenBucket>();

  /**
   * The bucket of this key, refilled for the time since its last refill.
   * @param now milliseconds on any monotonic clock
   */
  refill(key: string, { burst, interval }: RateLimit, now: number): TokenBucket {
    const existing = this.#buckets.get(key);
    if (existing === undefined) {
      const bucket = { tokens: burst, refilledAt: now, rejected: 0 };
      this.#buckets.set(key, bucket);
      const [first] = this.#buckets.keys();
      if (this.#buckets.size > MAX_KEYS && first !== undefined) this.#buckets.delete(first);
      return bucket;
    }
    existing.tokens = Math.min(burst, existing.tokens + (now - existing.refilledAt) / interval);
    existing.refilledAt = now;
    return existing;
  }

  /** Takes a token of this key, if there is one. @param now as above @returns ms until there is one; 0 if it was taken */
  take(key: string, limit: RateLimit, now: number): number {
    const bucket = this.refill(key, limit, now);
    if (bucket.tokens < 1) return (1 - bucket.tokens) * limit.interval;
    bucket.tokens -= 1;
    return 0;
  }
}
