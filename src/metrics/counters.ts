import type { TokenResult } from '../core/lan-service.ts';
import type { PairingFailureReason } from '../core/pairings/pairing.ts';
import type { ApplianceEvent } from '../core/reports/appliance-event.ts';
import { publicReason } from '../core/reports/pairing-failure.ts';
import type { ProblemCode } from '../core/reports/problem.ts';

/** Counts by outcome. An object, because a Map for each of thousands of appliances takes three times as much memory. */
type Counts<Outcome extends string> = { [Name in Outcome]?: number };

/** The counts of one appliance. */
export interface ApplianceCounters {
  readonly refreshes: Counts<'refreshed' | ProblemCode>;
  readonly tokenRequests: Counts<TokenResult['kind']>;
  readonly pairings: Counts<'paired' | PairingFailureReason>;
  rejectedTokens: number;
}

/** How many appliances are counted at most; the ones that were added first are dropped. */
const MAX_APPLIANCES = 10_000;

/** Counts events, only in memory, as long as the daemon runs. */
export class Counters {
  readonly #appliances = new Map<string, ApplianceCounters>();
  /** The time until the portal responded to a refresh, or until the hub stopped waiting for it. */
  readonly refreshDurations = new DurationHistogram();

  /** Counts an event of an appliance. */
  readonly record = (event: ApplianceEvent): void => {
    const { refreshes, pairings } = this.forAppliance(event.appliance);
    switch (event.kind) {
      case 'refreshed':
        increment(refreshes, 'refreshed');
        this.refreshDurations.observe(event.took);
        break;
      case 'refresh_failed':
        increment(refreshes, event.problem);
        if (event.took !== null) this.refreshDurations.observe(event.took);
        break;
      case 'paired':
        increment(pairings, 'paired');
        break;
      case 'pairing_failed':
        increment(pairings, publicReason(event.reason));
        break;
      case 'token_refused':
        this.forAppliance(event.appliance).rejectedTokens += 1;
        break;
      case 'unpaired':
        break;
    }
  };

  /** Counts the result of a token request. @param appliance its id */
  tokenRequested(appliance: string, kind: TokenResult['kind']): void {
    increment(this.forAppliance(appliance).tokenRequests, kind);
  }

  /** The counts of an appliance, which may be added by this. @param appliance its id */
  forAppliance(appliance: string): ApplianceCounters {
    const known = this.#appliances.get(appliance);
    if (known !== undefined) return known;
    const added: ApplianceCounters = { refreshes: {}, tokenRequests: {}, pairings: {}, rejectedTokens: 0 };
    this.#appliances.set(appliance, added);
    for (const first of this.#appliances.keys()) {
      if (this.#appliances.size <= MAX_APPLIANCES) break;
      this.#appliances.delete(first);
    }
    return added;
  }

  /** Drops the counts of all appliances except these. */
  retainOnly(ids: ReadonlySet<string>): void {
    for (const id of this.#appliances.keys()) if (!ids.has(id)) this.#appliances.delete(id);
  }
}

function increment<Outcome extends string>(counts: Counts<Outcome>, outcome: Outcome): void {
  counts[outcome] = (counts[outcome] ?? 0) + 1;
}

/** The upper bounds of the histogram's buckets, in seconds: for a near, a distant and an overloaded portal. */
export const DURATION_BUCKETS_SECONDS = [0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60];

/** The number of durations in a bucket, and their sum in ms. */
interface Bucket {
  count: number;
  sum: number;
}

/** Durations by bucket, because single durations would be too many to keep until the next scrape. */
export class DurationHistogram {
  readonly #buckets: readonly Bucket[] = [...DURATION_BUCKETS_SECONDS, Number.POSITIVE_INFINITY].map(() => ({
    count: 0,
    sum: 0,
  }));

  /** @param ms a duration */
  observe(ms: number): void {
    const index = DURATION_BUCKETS_SECONDS.findIndex((bound) => ms <= bound * 1000);
    const bucket = this.#buckets.at(index);
    if (bucket === undefined) return;
    bucket.count += 1;
    bucket.sum += ms;
  }

  /**
   * Returns a function that passes on the durations since its last call, in seconds. Each one is the mean of its
   * bucket, so that the count of every bucket and the sum are right.
   */
  createReader(): (observe: (seconds: number) => void) => void {
    const seen: readonly Bucket[] = this.#buckets.map(() => ({ count: 0, sum: 0 }));
    return (observe) => {
      for (const [index, { count, sum }] of this.#buckets.entries()) {
        const last = seen[index];
        if (last === undefined || count === last.count) continue;
        const mean = (sum - last.sum) / (count - last.count) / 1000;
        for (; last.count < count; last.count += 1) observe(mean);
        last.sum = sum;
      }
    };
  }
}
