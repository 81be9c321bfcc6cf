import type { Timers } from '../../core/clock.ts';
import type { PendingHistory, StoredHistoryEntry } from '../../core/reports/history.ts';
import type { HistoryTable } from '../rows/history-table.ts';
import type { Sql } from './sql.ts';

/** How long a write waits for other expected writes, in ms. */
const MAX_BATCH_DELAY = 10;

interface QueuedWrite {
  readonly appliance: string;
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
  readonly #history: HistoryTable;
  readonly #timers: Timers;
  /** Appliances whose response will be written. */
  readonly #expectedAppliances = new Set<string>();
  #queue: QueuedWrite[] = [];
  #cancelTimer: () => void = () => undefined;
  #isImmediate = false;
  #historySource: PendingHistory | null = null;

  constructor(sql: Sql, history: HistoryTable, timers: Timers) {
    this.#sql = sql;
    this.#history = history;
    this.#timers = timers;
  }

  /** From now on the pending history of an appliance is written together with its other writes. */
  setHistorySource(source: PendingHistory): void {
    this.#historySource = source;
  }

  /** Call this if a write for this appliance will follow soon. */
  expectWrite(appliance: string): void {
    this.#expectedAppliances.add(appliance);
  }

  /** Call this when that write was made, or will not follow. */
  stopExpecting(appliance: string): void {
    this.#expectedAppliances.delete(appliance);
  }

  /**
   * Writes something of an appliance together with other queued writes and with its pending history. If that fails, it
   * is written alone: see {@link writeNow}.
   */
  enqueue<Result>(appliance: string, write: () => Result, alone: () => Result = write): Promise<Result> {
    const { promise, resolve, reject } = Promise.withResolvers<Result>();
    this.#queue.push({
      appliance,
      writeInBatch: () => {
        const result = write();
        return () => resolve(result);
      },
      writeAlone: () => {
        try {
          resolve(this.writeNow(appliance, write, alone));
        } catch (error) {
          reject(error);
        }
      },
    });
    this.#scheduleCommit();
    return promise;
  }

  /**
   * Writes something of an appliance at once, with its pending history in the same transaction. If that fails, it is
   * written without the history, which must not cost a grant.
   * @param alone writes it without the history
   */
  writeNow<Result>(appliance: string, write: () => Result, alone: () => Result = write): Result {
    const lines = this.#pendingHistory(appliance);
    if (lines.length === 0) return alone();
    let result: Result;
    try {
      result = this.#sql.transaction(() => {
        this.#history.add(appliance, lines);
        return write();
      });
    } catch {
      return alone();
    }
    this.#historySource?.markWritten(appliance);
    return result;
  }

  /** A later write does not delay the earlier ones. */
  #scheduleCommit(): void {
    const isSoon = this.#expectedAppliances.size === 0;
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
    const lines = new Map(writes.map(({ appliance }) => [appliance, this.#pendingHistory(appliance)]));
    let settle: (() => void)[];
    try {
      settle = this.#sql.transaction(() => {
        for (const [appliance, added] of lines) this.#history.add(appliance, added);
        return writes.map(({ writeInBatch }) => writeInBatch());
      });
    } catch {
      for (const { writeAlone } of writes) writeAlone();
      return;
    }
    for (const [appliance, added] of lines) if (added.length > 0) this.#historySource?.markWritten(appliance);
    for (const settleOne of settle) settleOne();
  }

  #pendingHistory(appliance: string): readonly StoredHistoryEntry[] {
    return this.#historySource?.pending(appliance) ?? [];
  }
}
