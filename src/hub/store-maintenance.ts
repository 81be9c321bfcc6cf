import { type ScheduledTask, schedule } from 'node-cron';
import type { Environment } from '../broker/ports.ts';
import { LogDeduplicator } from '../broker/reports/log-deduplicator.ts';
import { DAY } from '../core/clock.ts';
import { messageOf } from '../core/failure.ts';
import { snapshotTime, writeSnapshot } from '../store/sqlite/snapshot.ts';
import type { SqliteStore } from '../store/sqlite/sqlite-store.ts';
import { SerialQueue } from '../system/serial-queue.ts';

/** Once a day, in the quiet hours of the night. */
const NIGHTLY_CRON = '23 3 * * *';
/**
 * How long after its start the hub schedules that, in ms. The first use of node-cron loads tables of time zones, and a
 * start should not wait for these, nor the appliances that ask first.
 */
const SCHEDULE_DELAY = 10_000;
/** How often an unwritable store is checked, in ms. */
const REOPEN_INTERVAL = 10_000;

/** Writes a snapshot of the store every night, and checks whether an unwritable store can be written again. */
export class StoreMaintenance implements AsyncDisposable {
  readonly #store: SqliteStore;
  readonly #environment: Pick<Environment, 'clock' | 'timers' | 'log'>;
  readonly #stopped = new AbortController();
  #cancelScheduling: () => void = () => undefined;
  #reopening: Promise<void> = Promise.resolve();
  #nightlySnapshot: ScheduledTask | null = null;
  readonly #snapshots = new SerialQueue();
  /** The store's change count at the last snapshot; null if this run has written none. */
  #snapshotChangeCount: number | null = null;
  readonly #onWritable: () => void;
  readonly #logDeduplicator: LogDeduplicator;

  /**
   * @param onWritable called when a store that was served from memory can be written again. It may contain more than
   *   what was served.
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

  /** Writes a snapshot if one is due, starts the checks, and schedules the nightly snapshot a little later. */
  start(): void {
    this.#cancelScheduling = this.#environment.timers.after(SCHEDULE_DELAY, () => this.#scheduleNightly());
    if (this.#isSnapshotDue()) this.requestSnapshot();
    this.#store.onPaired(() => this.requestSnapshot());
    this.#reopening = this.#reopenUntilWritable();
  }

  /** Writes a snapshot without waiting for the night, because no snapshot contains a new grant yet. */
  requestSnapshot(): void {
    void this.#snapshots.run(() => this.#writeSnapshotIfChanged());
  }

  /** Like {@link requestSnapshot}, but also if nothing has changed. @throws Failure as {@link writeSnapshot} */
  takeSnapshot(): Promise<void> {
    return this.#snapshots.run(() => writeSnapshot(this.#store));
  }

  /** Call this after the wall clock was set: node-cron would wait for the old time. */
  onClockSet(): void {
    if (this.#nightlySnapshot !== null) this.#scheduleNightly();
    if (this.#isSnapshotDue()) this.requestSnapshot();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#stopped.abort();
    this.#cancelScheduling();
    await this.#nightlySnapshot?.destroy();
    await Promise.all([this.#reopening, this.#snapshots.idle]);
  }

  #scheduleNightly(): void {
    void this.#nightlySnapshot?.destroy();
    const { log } = this.#environment;
    const debug = (message: string | Error) => log.debug('snapshot_schedule', { message: String(message) });
    this.#nightlySnapshot = schedule(NIGHTLY_CRON, () => this.requestSnapshot(), {
      unref: true,
      suppressMissedWarning: true,
      logger: { info: debug, warn: debug, error: debug, debug },
    });
  }

  /** Ends as soon as the store can be written. After that it stays writable. */
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
      const occurrence = this.#logDeduplicator.recordOccurrence('store', 'store');
      log.at(occurrence === null ? 'debug' : 'warn', 'store_reopen_failed', { error: messageOf(error) });
    }
  }

  #isSnapshotDue(): boolean {
    const writtenAt = snapshotTime(this.#store);
    const age = writtenAt === null ? DAY : this.#environment.clock.now().wall - writtenAt;
    // A snapshot from the future was dated by a wrong clock.
    return age >= DAY || age < 0;
  }

  /** Skips a snapshot if nothing has changed, because every write wears the SD card out. */
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
