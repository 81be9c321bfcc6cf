import type { TokenResult } from '../core/lan-service.ts';
import type { PairingFailureReason } from '../core/pairings/pairing.ts';
import type { ApplianceEvent } from '../core/reports/appliance-event.ts';
import { publicReason } from '../core/reports/pairing-failure.ts';
import type { ProblemCode } from '../core/reports/problem.ts';

/** How often there was what; a map for each of thousands of appliances would hold three times as much. */
type Counts<Outcome extends string> = { [Name in Outcome]?: number };

/** What was counted of one appliance. */
export interface ApplianceCounters {
  readonly refreshes: Counts<'refreshed' | ProblemCode>;
  readonly tokenRequests: Counts<TokenResult['kind']>;
  readonly pairings: Counts<'paired' | PairingFailureReason>;
  rejectedTokens: number;
}

/** Appliances that are counted at most; those that were heard of first give way. */
const MAX_APPLIANCES = 10_000;

/** Counts what happens, in memory alone, for as long as the daemon runs. */
export class Counters {
  readonly #appliances = new Map<string, ApplianceCounters>();
  /** How long the portal took to answer a refresh, or the hub to give an answer up. */
  readonly refreshDurations = new DurationHistogram();

  /** Takes what happened to an appliance. */
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

  /** A token request of an appliance was answered. @param appliance its id */
  tokenRequested(appliance: string, kind: TokenResult['kind']): void {
    increment(this.forAppliance(appliance).tokenRequests, kind);
  }

  /** @param appliance its id */
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

  /** Forgets all appliances but these. @param ids of those that are there */
  retainOnly(ids: ReadonlySet<string>): void {
    for (const id of this.#appliances.keys()) if (!ids.has(id)) this.#appliances.delete(id);
  }
}

function increment<Outcome extends string>(counts: Counts<Outcome>, outcome: Outcome): void {
  counts[outcome] = (counts[outcome] ?? 0) + 1;
}

/** The upper bounds of the histogram's buckets, in seconds: a portal nearby, far away, and at its end. */
export const DURATION_BUCKETS_SECONDS = [0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60];

/** How many durations were in a bucket, and how much they were together, in ms. */
interface Bucket {
  count: number;
  sum: number;
}

/** Durations by bucket: all of them would be too many to keep until the next scrape. */
export class DurationHistogram {
  readonly #buckets: readonly Bucket[] = [...DURATION_BUCKETS_SECONDS, Number.POSITIVE_INFINITY].map(() => ({
    count: 0,
    sum: 0,
  }));

  /** @param ms that something took */
  observe(ms: number): void {
    const place = DURATION_BUCKETS_SECONDS.findIndex((bound) => ms <= bound * 1000);
    const bucket = this.#buckets.at(place);
    if (bucket === undefined) return;
    bucket.count += 1;
    bucket.sum += ms;
  }

  /**
   * Gives a function that tells those that have come since it was called last, in seconds: each as the mean of its bucket, so
   * that the number in every bucket and the sum are right.
   */
  createReader(): (observe: (seconds: number) => void) => void {
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
