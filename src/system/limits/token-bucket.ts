/** How often something may happen: so many times at once, and once more every so many milliseconds. */
export interface RateLimit {
  readonly burst: number;
  readonly interval: number;
}

/** Keys that are known at one time; of more the one that was new first is forgotten. */
const MAX_KEYS = 20_000;

/** What is left of a rate limit. */
export interface TokenBucket {
  left: number;
  at: number;
  /** How often it was too much since the last time it was not. */
  refused: number;
}

/** Token buckets by key, in bounded memory. */
export class TokenBuckets {
  readonly #buckets = new Map<string, TokenBucket>();

  /**
   * What is left for this key, with what has come back since it was last asked for.
   * @param now milliseconds on any clock that does not go back
   */
  filled(key: string, { burst, interval }: RateLimit, now: number): TokenBucket {
    const known = this.#buckets.get(key);
    if (known === undefined) {
      const bucket = { left: burst, at: now, refused: 0 };
      this.#buckets.set(key, bucket);
      const [first] = this.#buckets.keys();
      if (this.#buckets.size > MAX_KEYS && first !== undefined) this.#buckets.delete(first);
      return bucket;
    }
    known.left = Math.min(burst, known.left + (now - known.at) / interval);
    known.at = now;
    return known;
  }
}
