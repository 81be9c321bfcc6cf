import type { Environment } from '../broker/ports.ts';
import { LogDeduplicator } from '../broker/reports/log-deduplicator.ts';
import { MAX_TIMER_DELAY } from '../core/clock.ts';
import type { CommitSummary, CommitTimes } from '../store/sqlite/commit-times.ts';

/** Logs when the store becomes slow, and when it no longer is. */
export class SlowStoreMonitor implements Disposable {
  readonly #commitTimes: CommitTimes;
  readonly #environment: Pick<Environment, 'timers' | 'log'>;
  readonly #logDeduplicator: LogDeduplicator;
  #cancelTimer: () => void = () => undefined;

  constructor(commitTimes: CommitTimes, environment: Pick<Environment, 'clock' | 'timers' | 'log'>) {
    this.#commitTimes = commitTimes;
    this.#environment = environment;
    this.#logDeduplicator = new LogDeduplicator(environment.clock);
    this.#check();
  }

  [Symbol.dispose](): void {
    this.#cancelTimer();
  }

  #check(): void {
    const { timers, log } = this.#environment;
    this.#cancelTimer = timers.after(MAX_TIMER_DELAY, () => this.#check());
    const summary = this.#commitTimes.summary();
    if (summary.slowFor === null) {
      if (this.#logDeduplicator.recordResolution('store') !== null)
        log.info('store_no_longer_slow', logMembers(summary));
    } else if (this.#logDeduplicator.recordOccurrence('store', 'store') !== null) {
      log.warn('store_slow', { ...logMembers(summary), duration: Math.round(summary.slowFor / 1000) });
    }
  }
}

function logMembers({ count, slowCount, median, p90, longest }: CommitSummary) {
  const seconds = (ms: number) => Math.round(ms) / 1000;
  return {
    commits: count,
    slow: slowCount,
    median: seconds(median),
    slowest_tenth: seconds(p90),
    longest: seconds(longest),
  };
}
