import type { TokenResult } from '../core/lan-service.ts';
import type { PairingFailureReason } from '../core/pairings/pairing.ts';
import type { ConnectionEvent } from '../core/reports/history.ts';
import { publicReason } from '../core/reports/pairing-failure.ts';
import type { ProblemCode } from '../core/reports/problem.ts';

/** Counts by outcome. An object, because a Map for each of thousands of appliances takes three times as much memory. */
type Counts<Outcome extends string> = { [Name in Outcome]?: number };

/** The counts of one connection. */
interface ConnectionCounters {
  readonly refreshes: Counts<'refreshed' | ProblemCode>;
  readonly pairings: Counts<'paired' | PairingFailureReason>;
  rejectedTokens: number;
}

/** The counts of one appliance's token requests. */
type RequestCounts = Counts<TokenResult['kind']>;

/** Counts events, only in memory, as long as the daemon runs. */
export class Counters {
  readonly #connections = new Map<string, ConnectionCounters>();
  readonly #requests = new Map<string, RequestCounts>();
  /** The time until the portal responded to a refresh, or until the hub stopped waiting for it. */
  readonly refreshDurations = new DurationHistogram(REFRESH_BUCKETS_SECONDS);
  /** The time that commits of the store took. */
  readonly commitDurations = new DurationHistogram(COMMIT_BUCKETS_SECONDS);

  /** Counts an event of a connection. */
  readonly record = (event: ConnectionEvent): void => {
    const counts = this.forConnection(event.connection);
    const { refreshes, pairings } = counts;
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
        counts.rejectedTokens += 1;
        break;
      case 'unpaired':
        break;
    }
  };

  /** Counts the result of a token request. @param appliance its id */
  tokenRequested(appliance: string, kind: TokenResult['kind']): void {
    increment(this.requestsOf(appliance), kind);
  }

  /** The counts of a connection, which may be added by this. @param connection its id */
  forConnection(connection: string): ConnectionCounters {
    return getOrAdd(this.#connections, connection, () => ({ refreshes: {}, pairings: {}, rejectedTokens: 0 }));
  }

  /** The counts of an appliance's token requests, which may be added by this. @param appliance its id */
  requestsOf(appliance: string): RequestCounts {
    return getOrAdd(this.#requests, appliance, () => ({}));
  }

  /** Drops the counts of all connections and appliances except these. */
  retainOnly(connections: ReadonlySet<string>, appliances: ReadonlySet<string>): void {
    for (const id of this.#connections.keys()) if (!connections.has(id)) this.#connections.delete(id);
    for (const id of this.#requests.keys()) if (!appliances.has(id)) this.#requests.delete(id);
  }
}

/** The counts with this id, which are added if there are none. */
function getOrAdd<Value>(counts: Map<string, Value>, id: string, create: () => Value): Value {
  const known = counts.get(id);
  if (known !== undefined) return known;
  const added = create();
  counts.set(id, added);
  return added;
}

function increment<Outcome extends string>(counts: Counts<Outcome>, outcome: Outcome): void {
  counts[outcome] = (counts[outcome] ?? 0) + 1;
}

/** The upper bounds of the histogram's buckets, in seconds: for a near, a distant and an overloaded portal. */
export const REFRESH_BUCKETS_SECONDS = [0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60];

/** The same for commits: on a good disk, a good SD card, and a card that is about to fail. */
const COMMIT_BUCKETS_SECONDS = [0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10];

/** The number of durations in a bucket, and their sum in ms. */
interface Bucket {
  count: number;
  sum: number;
}

/** Durations by bucket, because single durations would be too many to keep until the next scrape. */
export class DurationHistogram {
  readonly #bounds: readonly number[];
  readonly #buckets: readonly Bucket[];

  /** @param bounds the upper bounds of the buckets, in seconds; the last bucket has none */
  constructor(bounds: readonly number[]) {
    this.#bounds = bounds;
    this.#buckets = [...bounds, Number.POSITIVE_INFINITY].map(() => ({ count: 0, sum: 0 }));
  }

  /** @param ms a duration */
  observe(ms: number): void {
    const index = this.#bounds.findIndex((bound) => ms <= bound * 1000);
    const bucket = this.#buckets.at(index);
    if (bucket === undefined) return;
    bucket.count += 1;
    bucket.sum += ms;
  }

  /** The upper bounds of the buckets and the number of durations in each, and the sum of all; in seconds. */
  read(): { readonly bounds: readonly number[]; readonly counts: readonly number[]; readonly sum: number } {
    return {
      bounds: this.#bounds,
      counts: this.#buckets.map(({ count }) => count),
      sum: this.#buckets.reduce((sum, bucket) => sum + bucket.sum, 0) / 1000,
    };
  }
}
