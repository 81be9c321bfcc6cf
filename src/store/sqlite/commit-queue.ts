import type { Timers } from '../../core/clock.ts';
import { monotonicNow } from '../../system/clock.ts';
import { CommitTimes } from './commit-times.ts';
import { MAX_WAL_BYTES } from './database.ts';
import type { DatabaseSyncs } from './database-syncs.ts';
import type { Sql } from './sql.ts';
import type { Companion } from './tables/report-tables.ts';

/** How long a write waits for other expected writes, in ms. */
const MAX_BATCH_DELAY = 10;

/** The result of a write whose transaction has ended, but which is not on disk yet. */
interface UnsyncedWrite {
  readonly confirm: () => void;
  readonly fail: (error: unknown) => void;
  readonly onUnsynced: () => void;
}

interface QueuedWrite {
  /** The connection whose companions it takes along; null if it is of none. */
  readonly connection: string | null;
  /** Writes in a transaction with other writes. */
  readonly writeInBatch: () => UnsyncedWrite;
  /** Writes in its own transaction. @returns null if that failed, and the promise is rejected */
  readonly writeAlone: () => UnsyncedWrite | null;
  readonly fail: (error: unknown) => void;
}

/** What a write does if it can't be part of a transaction with others, or has failed. */
interface WriteOptions<Result> {
  /** Writes it in its own transaction; by default as in a batch. */
  readonly alone?: (() => Result) | undefined;
  /**
   * Called with the result if the write could not be synced, and is in the database, but perhaps not on the disk. It may
   * write.
   */
  readonly onUnsynced?: ((result: Result) => void) | undefined;
}

/** What {@link CommitQueue} writes to. */
interface Target {
  readonly sql: Sql;
  /** The syncs of the database that is open now. */
  readonly syncs: () => DatabaseSyncs;
  /** What can be written now together with a write of this connection. */
  readonly companionsOf: (connection: string) => readonly Companion[];
}

/**
 * Makes all commits of the store, one after the other. Writes that are queued together are one transaction, and share
 * its sync and the pages that they have in common: refreshes that are due together, responses that arrive together, and
 * whatever comes while an earlier commit is synced. The sync is made in libuv's thread pool; no promise resolves before
 * the whole transaction is on disk.
 *
 * A write that {@link enqueue} queues starts in the next turn of the event loop. If responses to refreshes that were
 * written ahead are still missing, it waits a moment for them. A write of {@link writeNow} starts at once.
 */
export class CommitQueue {
  /** How long the commits take, with their syncs. */
  readonly times = new CommitTimes(monotonicNow);
  readonly #target: Target;
  readonly #timers: Timers;
  /** Connections whose response will be written. */
  readonly #expectedConnections = new Set<string>();
  #queue: QueuedWrite[] = [];
  /** Work that excludes commits. */
  readonly #exclusive: (() => Promise<void>)[] = [];
  #timer: { readonly delay: number; readonly cancel: () => void } | null = null;
  /** Whether the queued writes wait for nothing but the commit in progress. */
  #isDue = false;
  #isRunning = false;
  #running: Promise<void> = Promise.resolve();

  constructor(target: Target, timers: Timers) {
    this.#target = target;
    this.#timers = timers;
  }

  /** Call this if a write for this connection will follow soon. */
  expectWrite(connection: string): void {
    this.#expectedConnections.add(connection);
  }

  /** Call this when that write was made, or will not follow. */
  stopExpecting(connection: string): void {
    this.#expectedConnections.delete(connection);
  }

  /**
   * Writes something of a connection together with other queued writes and with its companions. If that fails, it is
   * written alone, because others must not cost a grant.
   * @throws Failure as {@link Sql}
   */
  enqueue<Result>(connection: string, write: () => Result, options: WriteOptions<Result> = {}): Promise<Result> {
    const written = this.#push(connection, write, options);
    if (!this.#isRunning) this.#scheduleCommit();
    return written;
  }

  /**
   * Like {@link enqueue}, but waits for no other write.
   * @param connection whose companions are written too; null for none
   */
  writeNow<Result>(
    connection: string | null,
    write: () => Result,
    options: WriteOptions<Result> = {},
  ): Promise<Result> {
    const written = this.#push(connection, write, options);
    this.#isDue = true;
    this.#start();
    return written;
  }

  /**
   * Runs something while no commit is made, after all earlier writes.
   * @param needsSync whether those must be on the disk
   * @throws Failure of the store if they could not be synced, or as `work`
   */
  exclusively<Result>(work: () => Promise<Result> | Result, needsSync = true): Promise<Result> {
    const { promise, resolve, reject } = Promise.withResolvers<Result>();
    this.#exclusive.push(async () => {
      try {
        if (needsSync) await this.#target.syncs().complete();
        resolve(await work());
      } catch (error) {
        reject(this.#target.sql.toFailure(error));
      }
    });
    this.#start();
    return promise;
  }

  /** Waits until everything that is queued was written, or has failed. */
  async drain(): Promise<void> {
    this.#isDue = true;
    this.#start();
    await this.#running;
  }

  #push<Result>(connection: string | null, write: () => Result, options: WriteOptions<Result>): Promise<Result> {
    const { promise, resolve, reject } = Promise.withResolvers<Result>();
    const { alone = () => this.#target.sql.transaction(write), onUnsynced = () => undefined } = options;
    const unsynced = (result: Result): UnsyncedWrite => ({
      confirm: () => resolve(result),
      fail: reject,
      onUnsynced: () => onUnsynced(result),
    });
    this.#queue.push({
      connection,
      writeInBatch: () => unsynced(write()),
      writeAlone: () => {
        try {
          return unsynced(alone());
        } catch (error) {
          reject(error);
          return null;
        }
      },
      fail: reject,
    });
    return promise;
  }

  /** A later write does not delay the earlier ones. */
  #scheduleCommit(): void {
    const delay = this.#expectedConnections.size === 0 ? 0 : MAX_BATCH_DELAY;
    if (this.#timer !== null && this.#timer.delay <= delay) return;
    this.#timer?.cancel();
    const cancel = this.#timers.after(delay, () => {
      this.#isDue = true;
      this.#start();
    });
    this.#timer = { delay, cancel };
  }

  #start(): void {
    if (this.#isRunning) return;
    this.#isRunning = true;
    this.#running = this.#run();
  }

  async #run(): Promise<void> {
    while (this.#isDue || this.#exclusive.length > 0) {
      const work = this.#exclusive.shift();
      await this.#commit();
      await work?.();
    }
    this.#isRunning = false;
    if (this.#queue.length > 0) this.#scheduleCommit();
  }

  /** Commits everything that is queued. Never throws. */
  async #commit(): Promise<void> {
    this.#timer?.cancel();
    this.#timer = null;
    this.#isDue = false;
    const writes = this.#queue;
    this.#queue = [];
    if (writes.length === 0) return;
    const syncs = this.#target.syncs();
    let unsynced: readonly UnsyncedWrite[] | null = null;
    const end = this.times.begin();
    try {
      if (!syncs.isComplete) await syncs.complete();
      unsynced = syncs.commit(() => this.#write(writes));
      await syncs.complete();
      for (const { confirm } of unsynced) confirm();
    } catch (error) {
      for (const { fail } of unsynced ?? writes) fail(this.#target.sql.toFailure(error));
      if (unsynced !== null) this.#reportUnsynced(unsynced);
      return;
    } finally {
      end();
    }
    try {
      if (syncs.walBytes >= MAX_WAL_BYTES) await syncs.checkpoint();
    } catch {
      // Nothing is lost: the WAL has everything, and the next commit tries again.
    }
  }

  #reportUnsynced(writes: readonly UnsyncedWrite[]): void {
    try {
      this.#target.syncs().commit(() => {
        for (const { onUnsynced } of writes) onUnsynced();
      });
    } catch {
      // The database was closed, or nothing can be written any more.
    }
  }

  /** @returns the writes that have succeeded; the others are rejected */
  #write(writes: readonly QueuedWrite[]): UnsyncedWrite[] {
    const connections = new Set(writes.flatMap(({ connection }) => connection ?? []));
    const companions = [...connections].flatMap((connection) => this.#target.companionsOf(connection));
    if (writes.length + companions.length > 1) {
      try {
        const unsynced = this.#target.sql.transaction(() => {
          for (const companion of companions) companion.write();
          return writes.map(({ writeInBatch }) => writeInBatch());
        });
        for (const companion of companions) companion.markWritten();
        return unsynced;
      } catch {
        if (writes.length > 1) return writes.flatMap((write) => this.#write([write]));
      }
    }
    return writes.flatMap(({ writeAlone }) => writeAlone() ?? []);
  }
}
