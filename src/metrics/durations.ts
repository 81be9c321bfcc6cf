/** The upper bounds of the histogram's buckets, in seconds: a portal nearby, far away, and at its end. */
export const BUCKETS = [0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60];

/** How many durations were in a bucket, and how much they were together, in ms. */
interface Bucket {
  count: number;
  sum: number;
}

/** Durations by bucket: all of them would be too many to keep until somebody asks. */
export class Durations {
  readonly #buckets: readonly Bucket[] = [...BUCKETS, Number.POSITIVE_INFINITY].map(() => ({ count: 0, sum: 0 }));

  /** @param ms that something took */
  took(ms: number): void {
    const place = BUCKETS.findIndex((bound) => ms <= bound * 1000);
    const bucket = this.#buckets.at(place);
    if (bucket === undefined) return;
    bucket.count += 1;
    bucket.sum += ms;
  }

  /**
   * Gives a function that tells those that have come since it was called last, in seconds: each as the mean of its bucket, so
   * that the number in every bucket and the sum are right.
   */
  reader(): (observe: (seconds: number) => void) => void {
    const seen: readonly Bucket[] = this.#buckets.map(() => ({ count: 0, sum: 0 }));
    return (observe) => {
      for (const [place, { count, sum }] of this.#buckets.entries()) {
        const last = seen[place];
        if (last === undefined || count === last.count) continue;
        const mean = (sum - last.sum) / (count - last.count) / 1000;
        for (; last.count < count; last.count += 1) observe(mean);
        last.sum = sum;
      }
    };
  }
}
