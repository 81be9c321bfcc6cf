import type { BrokerStore, Environment } from '../../broker/ports.ts';
import { LogDeduplicator } from '../../broker/reports/log-deduplicator.ts';
import type { UsageRecorder } from '../../broker/reports/usage-recorder.ts';
import { elapsed, type Instant } from '../../core/clock.ts';
import { messageOf } from '../../core/failure.ts';
import type { OwnSiteEntry, SiteStore } from '../../core/site.ts';

/** How often a hub shares which tokens it has issued, and checks whether it is its turn to clean the database up, in ms. */
const HOUSEKEEPING_INTERVAL = 900_000;
/** How often the database is cleaned up, in ms: it keeps the changes of two hours. */
const CLEAN_UP_INTERVAL = 60 * 60_000;

interface SiteUpkeepContext {
  readonly site: SiteStore;
  readonly store: Pick<BrokerStore, 'writeProblem' | 'watch' | 'holdLease'>;
  readonly environment: Pick<Environment, 'clock' | 'timers' | 'log'>;
  /** What this hub says about itself now. */
  readonly ownEntry: () => OwnSiteEntry;
  readonly usageRecorder: Pick<UsageRecorder, 'share'>;
}

/**
 * What a hub does for its site besides its work for appliances: it says who it is, logs when the database is away, shares
 * which tokens it has issued, and cleans the database up. One hub does that for all, and another one if that hub is gone.
 */
export class SiteUpkeep implements AsyncDisposable {
  readonly #context: SiteUpkeepContext;
  readonly #logDeduplicator: LogDeduplicator;
  #cleanedUp: Instant;
  #cancelTimer: () => void = () => undefined;
  #working: Promise<void> = Promise.resolve();
  #isStopped = false;

  constructor(context: SiteUpkeepContext) {
    this.#context = context;
    this.#logDeduplicator = new LogDeduplicator(context.environment.clock);
    this.#cleanedUp = context.environment.clock.now();
  }

  /** Call it when the hub has opened its ports. */
  start(): void {
    const { store } = this.#context;
    this.announce();
    store.watch({ outage: () => this.#onOutage(), returned: () => this.#onReturn() });
    if (store.writeProblem !== null) this.#onOutage();
    this.#arm();
  }

  /** Call it when the hub's address has changed. */
  announce(): void {
    this.#context.site.announce(this.#context.ownEntry());
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#isStopped = true;
    this.#cancelTimer();
    await this.#working;
  }

  #onOutage(): void {
    const { environment, store } = this.#context;
    const occurrence = this.#logDeduplicator.recordOccurrence('site', 'site');
    environment.log.at(occurrence === null ? 'debug' : 'warn', 'database_unavailable', {
      error: store.writeProblem ?? '',
    });
  }

  #onReturn(): void {
    const { environment } = this.#context;
    const outage = this.#logDeduplicator.recordResolution('site');
    if (outage !== null) environment.log.info('database_available', { duration: outage.durationSeconds });
  }

  #arm(): void {
    this.#cancelTimer = this.#context.environment.timers.after(HOUSEKEEPING_INTERVAL, () => {
      this.#working = this.#keepHouse().finally(() => {
        if (!this.#isStopped) this.#arm();
      });
    });
  }

  async #keepHouse(): Promise<void> {
    await this.#context.usageRecorder.share();
    await this.#cleanUpIfDue();
  }

  /** The first hub that runs does it, so that hubs do not take turns. */
  async #cleanUpIfDue(): Promise<void> {
    const { site, store, environment } = this.#context;
    const now = environment.clock.now();
    if ((elapsed(this.#cleanedUp, now) ?? CLEAN_UP_INTERVAL) < CLEAN_UP_INTERVAL || store.writeProblem !== null) return;
    if (site.hubs.find(({ isAlive }) => isAlive)?.id !== site.hubId) return;
    this.#cleanedUp = now;
    try {
      if (await store.holdLease('cleanup')) await site.cleanUp();
    } catch (error) {
      environment.log.warn('site_cleanup_failed', { error: messageOf(error) });
    }
  }
}
