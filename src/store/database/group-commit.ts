import type { Timers } from '../../core/clock.ts';
import type { Companion } from './companions.ts';
import type { Sql } from './sql.ts';

/** How long a write waits for other expected writes, in ms. */
const MAX_BATCH_DELAY = 10;

interface QueuedWrite {
  readonly connection: string;
  /**
   * Writes in a transaction with other writes.
   * @returns a function that settles the promise; call it after the commit
   */
  readonly writeInBatch: () => () => void;
  /** Writes in its own transaction, and settles the promise. */
  readonly writeAlone: () => void;
}

/**
 * Writes refreshes that are due together in one transaction, and also responses that arrive together. They share its
 * sync, and the pages that they have in common. No promise resolves before the whole transaction is on disk.
 *
 * A write starts in the next turn of the event loop. If responses to refreshes that were written ahead are still
 * missing, it waits a moment for them.
 */
export class GroupCommit {
  readonly #sql: Sql;
  readonly #companionsOf: (connection: string) => readonly Companion[];
  readonly #timers: Timers;
  /** Connections whose response will be written. */
  readonly #expectedConnections = new Set<string>();
  #queue: QueuedWrite[] = [];
  #cancelTimer: () => void = () => undefined;
  #isImmediate = false;

  /** @param companionsOf what can be written now together with a write of this connection */
  constructor(sql: Sql, companionsOf: (connection: string) => readonly Companion[], timers: Timers) {
    this.#sql = sql;
    this.#companionsOf = companionsOf;
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
   * written alone: see {@link writeNow}.
   */
  enqueue<Result>(connection: string, write: () => Result, alone: () => Result = write): Promise<Result> {
    const { promise, resolve, reject } = Promise.withResolvers<Result>();
    this.#queue.push({
      connection,
      writeInBatch: () => {
        const result = write();
        return () => resolve(result);
      },
      writeAlone: () => {
        try {
          resolve(this.writeNow(connection, write, alone));
        } catch (error) {
          reject(error);
        }
      },
    });
    this.#scheduleCommit();
    return promise;
  }

  /**
   * Writes something of a connection at once, with its companions in the same transaction. If that fails, it is written
   * without them, because they must not cost a grant.
   * @param alone writes it without companions
   */
  writeNow<Result>(connection: string, write: () => Result, alone: () => Result = write): Result {
    const companions = this.#companionsOf(connection);
    if (companions.length === 0) return alone();
    let result: Result;
    try {
      result = this.#sql.transaction(() => {
        for (const companion of companions) companion.write();
        return write();
      });
    } catch {
      return alone();
    }
    for (const companion of companions) companion.markWritten();
    return result;
  }

  /** A later write does not delay the earlier ones. */
  #scheduleCommit(): void {
    const isSoon = this.#expectedConnections.size === 0;
    if (this.#queue.length > 1 && (this.#isImmediate || !isSoon)) return;
    this.#isImmediate = isSoon;
    this.#cancelTimer();
    this.#cancelTimer = this.#timers.after(isSoon ? 0 : MAX_BATCH_DELAY, () => this.#commit());
  }

  #commit(): void {
    const writes = this.#queue;
    this.#queue = [];
    const [first, ...others] = writes;
    if (others.length === 0) {
      first?.writeAlone();
      return;
    }
    const connections = new Set(writes.map(({ connection }) => connection));
    const companions = [...connections].flatMap((connection) => this.#companionsOf(connection));
    let settle: (() => void)[];
    try {
      settle = this.#sql.transaction(() => {
        for (const companion of companions) companion.write();
        return writes.map(({ writeInBatch }) => writeInBatch());
      });
    } catch {
      for (const { writeAlone } of writes) writeAlone();
      return;
    }
    for (const companion of companions) companion.markWritten();
    for (const settleOne of settle) settleOne();
  }
}
