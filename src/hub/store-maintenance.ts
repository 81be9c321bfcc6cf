import { type ScheduledTask, schedule } from 'node-cron';
import type { Environment } from '../broker/environment.ts';
import { LogDeduplicator } from '../broker/reports/log-deduplicator.ts';
import { messageOf } from '../core/failure.ts';
import { snapshotTime, writeSnapshot } from '../store/backup/snapshot.ts';
import type { SqliteStore } from '../store/sqlite-store.ts';

/** Once a day, in the quiet hours of the night. */
const NIGHTLY_CRON = '23 3 * * *';
const DAY_MS = 86_400_000;
/** How often it is looked whether a store that can't be written can be again, in ms. */
const REOPEN_INTERVAL = 10_000;

/** Keeps the store in order: a copy of it every day, and a look whether one that can't be written can be again. */
export class StoreMaintenance implements AsyncDisposable {
  readonly #store: SqliteStore;
  readonly #environment: Pick<Environment, 'clock' | 'timers' | 'log'>;
  readonly #stopped = new AbortController();
  #reopening: Promise<void> = Promise.resolve();
  #nightlySnapshot: ScheduledTask | null = null;
  #snapshotQueue: Promise<void> = Promise.resolve();
  /** The store's count of changes when it was copied last; null where that was not in this run. */
  #snapshotChangeCount: number | null = null;
  readonly #onWritable: () => void;
  readonly #logDeduplicator: LogDeduplicator;

  /**
   * @param onWritable hears that a store that was served from memory can be written again: what is in it may be more than
   *   what was served
   */
  constructor(
    store: SqliteStore,
    environment: Pick<Environment, 'clock' | 'timers' | 'log'>,
    onWritable: () => void = () => undefined,
  ) {
    this.#store = store;
    this.#onWritable = onWritable;
    this.#environment = environment;
    this.#logDeduplicator = new LogDeduplicator(environment.clock);
  }

  /** Begins with it. */
  start(): void {
    this.#nightlySnapshot = this.#scheduleNightly();
    if (this.#isSnapshotDue()) this.requestSnapshot();
    this.#store.onPaired(() => this.requestSnapshot());
    this.#reopening = this.#reopenUntilWritable();
  }

  /** Makes a copy without waiting for the night: a grant that has just come is in none yet. */
  requestSnapshot(): void {
    this.#snapshotQueue = this.#snapshotQueue.then(() => this.#writeSnapshotIfChanged());
  }

  /** Makes a copy as {@link requestSnapshot} does, whatever has changed. @throws Failure as {@link writeSnapshot} */
  takeSnapshot(): Promise<void> {
    const copied = this.#snapshotQueue.then(() => writeSnapshot(this.#store));
    this.#snapshotQueue = copied.catch(() => undefined);
    return copied;
  }

  /** The wall clock was set: node-cron would wait for the old time. */
  onClockSet(): void {
    void this.#nightlySnapshot?.destroy();
    this.#nightlySnapshot = this.#scheduleNightly();
    if (this.#isSnapshotDue()) this.requestSnapshot();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#stopped.abort();
    await this.#nightlySnapshot?.destroy();
    await Promise.all([this.#reopening, this.#snapshotQueue]);
  }

  #scheduleNightly(): ScheduledTask {
    const { log } = this.#environment;
    const said = (message: string | Error) => log.debug('snapshot_schedule', { message: String(message) });
    return schedule(NIGHTLY_CRON, () => this.requestSnapshot(), {
      unref: true,
      suppressMissedWarning: true,
      logger: { info: said, warn: said, error: said, debug: said },
    });
  }

  /** Ends where the store can be written, from the start or again: it stays so then. */
  async #reopenUntilWritable(): Promise<void> {
    const { timers } = this.#environment;
    const { signal } = this.#stopped;
    while (this.#store.writeProblem !== null) {
      await timers.sleep(REOPEN_INTERVAL, signal);
      if (signal.aborted) return;
      await this.#tryReopen();
    }
  }

  async #tryReopen(): Promise<void> {
    const { log } = this.#environment;
    try {
      if (!(await this.#store.tryReopen())) return;
      this.#logDeduplicator.recordResolution('store');
      log.info('store_writable');
      this.#onWritable();
    } catch (error) {
      const told = this.#logDeduplicator.recordOccurrence('store', 'store');
      log.at(told === null ? 'debug' : 'warn', 'store_reopen_failed', { error: messageOf(error) });
    }
  }

  #isSnapshotDue(): boolean {
    const made = snapshotTime(this.#store);
    const age = made === null ? DAY_MS : this.#environment.clock.now().wall - made;
    // A copy from the future was made by a wrong clock.
    return age >= DAY_MS || age < 0;
  }

  /** A card wears out with every write: what did not change since the last copy is not copied again. */
  async #writeSnapshotIfChanged(): Promise<void> {
    const { log } = this.#environment;
    if (this.#stopped.signal.aborted || this.#store.writeProblem !== null) return;
    try {
      const changes = this.#store.changeCount;
      if (changes === this.#snapshotChangeCount) return;
      await writeSnapshot(this.#store);
      this.#snapshotChangeCount = changes;
      log.info('snapshot_written', { file: this.#store.files.snapshot });
    } catch (error) {
      log.warn('snapshot_failed', { error: messageOf(error) });
    }
  }
}
