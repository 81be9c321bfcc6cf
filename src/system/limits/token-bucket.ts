/** How often something may happen: so many times at once, and once more every so many milliseconds. */
export interface RateLimit {
  readonly burst: number;
  readonly interval: number;
}

/** Keys that are known at one time; of more the one that was new first is forgotten. */
const MAX_KEYS = 20_000;

/** What is left of a rate limit. */
export interface TokenBucket {
  tokens: number;
  refilledAt: number;
  /** How often it was too much since the last time it was not. */
  rejected: number;
}

/** Token buckets by key, in bounded memory. */
export class TokenBuckets {
  readonly #buckets = new Map<string, TokenBucket>();

  /**
   * What is left for this key, with what has come back since it was last asked for.
   * @param now milliseconds on any clock that does not go back
   */
  refill(key: string, { burst, interval }: RateLimit, now: number): TokenBucket {
    const known = this.#buckets.get(key);
    if (known === undefined) {
      const bucket = { tokens: burst, refilledAt: now, rejected: 0 };
      this.#buckets.set(key, bucket);
      const [first] = this.#buckets.keys();
      if (this.#buckets.size > MAX_KEYS && first !== undefined) this.#buckets.delete(first);
      return bucket;
    }
    known.tokens = Math.min(burst, known.tokens + (now - known.refilledAt) / interval);
    known.refilledAt = now;
    return known;
  }
}
