import { type ScheduledTask, schedule } from 'node-cron';
import type { Environment } from '../broker/environment.ts';
import { LogDeduplicator } from '../broker/reports/log-deduplicator.ts';
import { messageOf } from '../core/failure.ts';
import { snapshotTime, writeSnapshot } from '../store/backup/snapshot.ts';
import type { SqliteStore } from '../store/sqlite-store.ts';

/** Once a day, in the quiet hours of the night. */
const NIGHTLY = '23 3 * * *';
const DAY = 86_400_000;
/** How often it is looked whether a store that can't be written can be again, in ms. */
const LOOK = 10_000;

/** Keeps the store in order: a copy of it every day, and a look whether one that can't be written can be again. */
export class Housekeeping implements AsyncDisposable {
  readonly #store: SqliteStore;
  readonly #environment: Pick<Environment, 'clock' | 'timers' | 'log'>;
  readonly #stopped = new AbortController();
  #looks: Promise<void> = Promise.resolve();
  #nightly: ScheduledTask | null = null;
  #work: Promise<void> = Promise.resolve();
  /** The store's count of changes when it was copied last; null where that was not in this run. */
  #copied: number | null = null;
  readonly #onWritable: () => void;
  readonly #troubles: LogDeduplicator;

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
    this.#troubles = new LogDeduplicator(environment.clock);
  }

  /** Begins with it. */
  begin(): void {
    this.#nightly = this.#plan();
    if (this.#copyIsOld()) this.copySoon();
    this.#store.whenPaired(() => this.copySoon());
    this.#looks = this.#lookAgain();
  }

  /** Makes a copy without waiting for the night: a grant that has just come is in none yet. */
  copySoon(): void {
    this.#work = this.#work.then(() => this.#copy());
  }

  /** Makes a copy as {@link copySoon} does, whatever has changed. @throws Failure as {@link writeSnapshot} */
  copyNow(): Promise<void> {
    const copied = this.#work.then(() => writeSnapshot(this.#store));
    this.#work = copied.catch(() => undefined);
    return copied;
  }

  /** The wall clock was set: node-cron would wait for the old time. */
  clockSet(): void {
    void this.#nightly?.destroy();
    this.#nightly = this.#plan();
    if (this.#copyIsOld()) this.copySoon();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#stopped.abort();
    await this.#nightly?.destroy();
    await Promise.all([this.#looks, this.#work]);
  }

  #plan(): ScheduledTask {
    const { log } = this.#environment;
    const said = (message: string | Error) => log.debug('snapshot_schedule', { message: String(message) });
    return schedule(NIGHTLY, () => this.copySoon(), {
      unref: true,
      suppressMissedWarning: true,
      logger: { info: said, warn: said, error: said, debug: said },
    });
  }

  /** Ends where the store can be written, from the start or again: it stays so then. */
  async #lookAgain(): Promise<void> {
    const { timers } = this.#environment;
    const { signal } = this.#stopped;
    while (this.#store.unwritable !== null) {
      await timers.sleep(LOOK, signal);
      if (signal.aborted) return;
      await this.#tryToWrite();
    }
  }

  async #tryToWrite(): Promise<void> {
    const { log } = this.#environment;
    try {
      if (!(await this.#store.tryToWrite())) return;
      this.#troubles.resolved('store');
      log.info('store_writable');
      this.#onWritable();
    } catch (error) {
      const told = this.#troubles.occurred('store', 'store');
      log.at(told === null ? 'debug' : 'warn', 'store_reopen_failed', { error: messageOf(error) });
    }
  }

  #copyIsOld(): boolean {
    const made = snapshotTime(this.#store);
    const age = made === null ? DAY : this.#environment.clock.now().wall - made;
    // A copy from the future was made by a wrong clock.
    return age >= DAY || age < 0;
  }

  /** A card wears out with every write: what did not change since the last copy is not copied again. */
  async #copy(): Promise<void> {
    const { log } = this.#environment;
    if (this.#stopped.signal.aborted || this.#store.unwritable !== null) return;
    try {
      const changes = this.#store.changes;
      if (changes === this.#copied) return;
      await writeSnapshot(this.#store);
      this.#copied = changes;
      log.info('snapshot_written', { file: this.#store.files.snapshot });
    } catch (error) {
      log.warn('snapshot_failed', { error: messageOf(error) });
    }
  }
}
