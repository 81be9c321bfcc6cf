import * as v from 'valibot';
import { PAIRING_FAILURE_REASONS } from '../../core/pairings/pairing.ts';
import { MAX_HISTORY_ENTRIES, placeHistoryEntry, type StoredHistoryEntry } from '../../core/reports/history.ts';
import { PROBLEM_CODES } from '../../core/reports/problem.ts';
import type { Sql } from '../database/sql.ts';

/** No appliance ever has so many lines: a higher number is damage, and no line could follow it. */
const NUMBER_LIMIT = 2 ** 40;

const time = v.pipe(v.number(), v.integer(), v.minValue(0), v.maxValue(8.64e15));
const commonColumns = {
  appliance: v.string(),
  number: v.pipe(v.number(), v.integer(), v.maxValue(NUMBER_LIMIT - 1)),
  first: time,
  last: time,
  count: v.pipe(v.number(), v.safeInteger(), v.minValue(1)),
};

/** A row of `history`: the lines of each appliance are numbered in their order. */
export const historyRow = v.variant('kind', [
  v.object({ ...commonColumns, kind: v.picklist(['paired', 'unpaired', 'refreshed', 'token_refused']), why: v.null() }),
  v.object({ ...commonColumns, kind: v.literal('pairing_failed'), why: v.picklist(PAIRING_FAILURE_REASONS) }),
  v.object({ ...commonColumns, kind: v.literal('refresh_failed'), why: v.picklist(PROBLEM_CODES) }),
]);

export type HistoryRow = v.InferOutput<typeof historyRow>;

/** How many lines are searched for one to merge with: one day never has so many. */
const MAX_MERGE_CANDIDATES = 40;

/** The history of the appliances as rows. */
export class HistoryTable {
  readonly #sql: Sql;

  constructor(sql: Sql) {
    this.#sql = sql;
  }

  /** The oldest first; invalid rows are left out. */
  list(appliance: string): StoredHistoryEntry[] {
    return this.#readNewest(appliance, MAX_HISTORY_ENTRIES).map(({ kind, why, first, last, count }) => ({
      ...{ kind, why, first, last, count },
    }));
  }

  /** Runs several statements: call it in a transaction. Writes nothing for an appliance that was removed. */
  add(appliance: string, lines: readonly StoredHistoryEntry[]): void {
    for (const line of lines) this.#addOne(appliance, line);
  }

  #addOne(appliance: string, next: StoredHistoryEntry): void {
    const rows = this.#readNewest(appliance, MAX_MERGE_CANDIDATES);
    const { index, line } = placeHistoryEntry(rows, next);
    const row = rows[index];
    if (row !== undefined) {
      this.#sql.run(
        'UPDATE history SET first = ?, last = ?, count = ? WHERE appliance = ? AND number = ?',
        ...[line.first, line.last, line.count, appliance, row.number],
      );
      return;
    }
    this.#sql.run('DELETE FROM history WHERE appliance = ? AND number >= ?', appliance, NUMBER_LIMIT);
    this.#sql.run(
      `INSERT INTO history (appliance, number, kind, why, first, last, count)
       SELECT id, (SELECT coalesce(max(number), 0) + 1 FROM history WHERE appliance = id), ?, ?, ?, ?, ?
       FROM appliances WHERE id = ?`,
      ...[line.kind, line.why, line.first, line.last, line.count, appliance],
    );
    this.#sql.run(
      `DELETE FROM history WHERE appliance = ? AND number <=
       (SELECT number FROM history WHERE appliance = ? ORDER BY number DESC LIMIT 1 OFFSET ?)`,
      ...[appliance, appliance, MAX_HISTORY_ENTRIES],
    );
  }

  #readNewest(appliance: string, limit: number): HistoryRow[] {
    return this.#sql
      .all<unknown>('SELECT * FROM history WHERE appliance = ? ORDER BY number DESC LIMIT ?', appliance, limit)
      .flatMap((row) => {
        const read = v.safeParse(historyRow, row);
        return read.success ? [read.output] : [];
      })
      .toReversed();
  }
}
