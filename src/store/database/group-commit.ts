import type { Timers } from '../../core/clock.ts';
import type { PendingHistory, StoredHistoryEntry } from '../../core/reports/history.ts';
import type { HistoryTable } from '../rows/history-table.ts';
import type { Sql } from './sql.ts';

/** While others are expected, a write waits for them so long at most, in ms. */
const MAX_BATCH_DELAY = 10;

interface QueuedWrite {
  readonly appliance: string;
  /** Does it in a transaction with others. @returns what settles its promise once that is on disk */
  readonly writeInBatch: () => () => void;
  /** Does it in one of its own, and settles its promise. */
  readonly writeAlone: () => void;
}

/**
 * Refreshes that are due together are written in one transaction, and so are the answers that come at once: they share its
 * sync, and the pages that they have in common. Nobody is told that something is written before all of it is on disk.
 *
 * A write that is asked for is begun when the event loop has come round. Where answers to refreshes that were written ahead are
 * still to come, it waits for them a moment.
 */
export class GroupCommit {
  readonly #sql: Sql;
  readonly #history: HistoryTable;
  readonly #timers: Timers;
  /** Appliances whose answer is to be written. */
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

  /** From now on what waits to be written of an appliance's history goes with whatever else is written of it. */
  setHistorySource(source: PendingHistory): void {
    this.#historySource = source;
  }

  /** Something of this appliance will be written soon. */
  expectWrite(appliance: string): void {
    this.#expectedAppliances.add(appliance);
  }

  /** It was, or nothing more is to come. */
  stopExpecting(appliance: string): void {
    this.#expectedAppliances.delete(appliance);
  }

  /**
   * Writes something of an appliance together with what else is to be written now, and with what waits of its history. Where
   * that fails it is written by itself: see {@link write}.
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
   * Writes something of an appliance at once, and in the same transaction what waits of its history. Where that fails it is
   * written without: a history is worth no grant.
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

  /** Who comes later makes nobody wait longer. */
  #scheduleCommit(): void {
    const isSoon = this.#expectedAppliances.size === 0;
    if (this.#queue.length > 1 && (this.#isImmediate || !isSoon)) return;
    this.#isImmediate = isSoon;
    this.#cancelTimer();
    this.#cancelTimer = this.#timers.after(isSoon ? 0 : MAX_BATCH_DELAY, () => this.#commit());
  }

  #commit(): void {
    const waiting = this.#queue;
    this.#queue = [];
    const [one, ...others] = waiting;
    if (others.length === 0) {
      one?.writeAlone();
      return;
    }
    const lines = new Map(waiting.map(({ appliance }) => [appliance, this.#pendingHistory(appliance)]));
    let settle: (() => void)[];
    try {
      settle = this.#sql.transaction(() => {
        for (const [appliance, added] of lines) this.#history.add(appliance, added);
        return waiting.map(({ writeInBatch: together }) => together());
      });
    } catch {
      for (const { writeAlone: alone } of waiting) alone();
      return;
    }
    for (const [appliance, added] of lines) if (added.length > 0) this.#historySource?.markWritten(appliance);
    for (const written of settle) written();
  }

  #pendingHistory(appliance: string): readonly StoredHistoryEntry[] {
    return this.#historySource?.pending(appliance) ?? [];
  }
}
