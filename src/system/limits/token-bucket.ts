/** How often something may happen: so many times at once, and once more every so many milliseconds. */
export interface Allowance {
  readonly most: number;
  readonly every: number;
}

/** Keys that are known at one time; of more the one that was new first is forgotten. */
const MOST_KEYS = 20_000;

/** What is left of an allowance. */
export interface Bucket {
  left: number;
  at: number;
  /** How often it was too much since the last time it was not. */
  refused: number;
}

/** Allowances by key, in bounded memory. */
export class Buckets {
  readonly #buckets = new Map<string, Bucket>();

  /**
   * What is left for this key, with what has come back since it was last asked for.
   * @param now milliseconds on any clock that does not go back
   */
  filled(key: string, { most, every }: Allowance, now: number): Bucket {
    const known = this.#buckets.get(key);
    if (known === undefined) {
      const bucket = { left: most, at: now, refused: 0 };
      this.#buckets.set(key, bucket);
      const [first] = this.#buckets.keys();
      if (this.#buckets.size > MOST_KEYS && first !== undefined) this.#buckets.delete(first);
      return bucket;
    }
    known.left = Math.min(most, known.left + (now - known.at) / every);
    known.at = now;
    return known;
  }
}
