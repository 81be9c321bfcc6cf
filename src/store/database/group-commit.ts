import type { Timers } from '../../core/clock.ts';
import type { HistoryLine, WaitingHistory } from '../../core/reports/history.ts';
import type { HistoryTable } from '../rows/history-table.ts';
import type { Sql } from './sql.ts';

/** While others are expected, a write waits for them so long at most, in ms. */
const MAX_WAIT = 10;

interface Waiting {
  readonly appliance: string;
  /** Does it in a transaction with others. @returns what settles its promise once that is on disk */
  readonly together: () => () => void;
  /** Does it in one of its own, and settles its promise. */
  readonly alone: () => void;
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
  readonly #expected = new Set<string>();
  #waiting: Waiting[] = [];
  #disarm: () => void = () => undefined;
  #isSoon = false;
  #source: WaitingHistory | null = null;

  constructor(sql: Sql, history: HistoryTable, timers: Timers) {
    this.#sql = sql;
    this.#history = history;
    this.#timers = timers;
  }

  /** From now on what waits to be written of an appliance's history goes with whatever else is written of it. */
  takeHistoryFrom(source: WaitingHistory): void {
    this.#source = source;
  }

  /** Something of this appliance will be written soon. */
  expect(appliance: string): void {
    this.#expected.add(appliance);
  }

  /** It was, or nothing more is to come. */
  expectNoMore(appliance: string): void {
    this.#expected.delete(appliance);
  }

  /**
   * Writes something of an appliance together with what else is to be written now, and with what waits of its history. Where
   * that fails it is written by itself: see {@link write}.
   */
  join<Result>(appliance: string, write: () => Result, alone: () => Result = write): Promise<Result> {
    const { promise, resolve, reject } = Promise.withResolvers<Result>();
    this.#waiting.push({
      appliance,
      together: () => {
        const result = write();
        return () => resolve(result);
      },
      alone: () => {
        try {
          resolve(this.write(appliance, write, alone));
        } catch (error) {
          reject(error);
        }
      },
    });
    this.#arm();
    return promise;
  }

  /**
   * Writes something of an appliance at once, and in the same transaction what waits of its history. Where that fails it is
   * written without: a history is worth no grant.
   * @param alone writes it without the history
   */
  write<Result>(appliance: string, write: () => Result, alone: () => Result = write): Result {
    const lines = this.#linesOf(appliance);
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
    this.#source?.written(appliance);
    return result;
  }

  /** Who comes later makes nobody wait longer. */
  #arm(): void {
    const isSoon = this.#expected.size === 0;
    if (this.#waiting.length > 1 && (this.#isSoon || !isSoon)) return;
    this.#isSoon = isSoon;
    this.#disarm();
    this.#disarm = this.#timers.after(isSoon ? 0 : MAX_WAIT, () => this.#commit());
  }

  #commit(): void {
    const waiting = this.#waiting;
    this.#waiting = [];
    const [one, ...others] = waiting;
    if (others.length === 0) {
      one?.alone();
      return;
    }
    const lines = new Map(waiting.map(({ appliance }) => [appliance, this.#linesOf(appliance)]));
    let settle: (() => void)[];
    try {
      settle = this.#sql.transaction(() => {
        for (const [appliance, added] of lines) this.#history.add(appliance, added);
        return waiting.map(({ together }) => together());
      });
    } catch {
      for (const { alone } of waiting) alone();
      return;
    }
    for (const [appliance, added] of lines) if (added.length > 0) this.#source?.written(appliance);
    for (const written of settle) written();
  }

  #linesOf(appliance: string): readonly HistoryLine[] {
    return this.#source?.waiting(appliance) ?? [];
  }
}
