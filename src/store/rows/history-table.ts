import * as v from 'valibot';
import { PAIRING_FAILURE_REASONS } from '../../core/pairings/pairing.ts';
import { MAX_HISTORY_ENTRIES, placeHistoryEntry, type StoredHistoryEntry } from '../../core/reports/history.ts';
import { PROBLEM_CODES } from '../../core/reports/problem.ts';
import type { Sql } from '../database/sql.ts';

/** No connection ever has so many lines: a higher number is damage, and no line could follow it. */
const NUMBER_LIMIT = 2 ** 40;

const time = v.pipe(v.number(), v.integer(), v.minValue(0), v.maxValue(8.64e15));
const commonColumns = {
  connection: v.string(),
  number: v.pipe(v.number(), v.integer(), v.maxValue(NUMBER_LIMIT - 1)),
  first: time,
  last: time,
  count: v.pipe(v.number(), v.safeInteger(), v.minValue(1)),
};

/**
 * A row of `history`: the lines of each connection are numbered in their order. What a person did has no reason, so its
 * `why` is the name of that user, if it is known.
 */
export const historyRow = v.variant('kind', [
  v.object({ ...commonColumns, kind: v.literal('paired'), why: v.nullable(v.string()) }),
  v.object({ ...commonColumns, kind: v.literal('unpaired'), why: v.nullable(v.string()) }),
  v.object({ ...commonColumns, kind: v.picklist(['refreshed', 'token_refused']), why: v.null() }),
  v.object({ ...commonColumns, kind: v.literal('pairing_failed'), why: v.picklist(PAIRING_FAILURE_REASONS) }),
  v.object({ ...commonColumns, kind: v.literal('refresh_failed'), why: v.picklist(PROBLEM_CODES) }),
]);

export type HistoryRow = v.InferOutput<typeof historyRow>;

/** How many lines are searched for one to merge with: one day never has so many. */
const MAX_MERGE_CANDIDATES = 40;

/** The history of the connections as rows. */
export class HistoryTable {
  readonly #sql: Sql;

  constructor(sql: Sql) {
    this.#sql = sql;
  }

  /** The oldest first; invalid rows are left out. */
  list(connection: string): StoredHistoryEntry[] {
    return this.#readNewest(connection, MAX_HISTORY_ENTRIES).map(toLine);
  }

  /** Runs several statements: call it in a transaction. Writes nothing for a connection that was removed. */
  add(connection: string, lines: readonly StoredHistoryEntry[]): void {
    for (const line of lines) this.#addOne(connection, line);
  }

  #addOne(connection: string, next: StoredHistoryEntry): void {
    const rows = this.#readNewest(connection, MAX_MERGE_CANDIDATES);
    const { index, line } = placeHistoryEntry(rows.map(toLine), next);
    const row = rows[index];
    if (row !== undefined) {
      this.#sql.run(
        'UPDATE history SET first = ?, last = ?, count = ? WHERE connection = ? AND number = ?',
        ...[line.first, line.last, line.count, connection, row.number],
      );
      return;
    }
    this.#sql.run('DELETE FROM history WHERE connection = ? AND number >= ?', connection, NUMBER_LIMIT);
    this.#sql.run(
      `INSERT INTO history (connection, number, kind, why, first, last, count)
       SELECT id, (SELECT coalesce(max(number), 0) + 1 FROM history WHERE connection = id), ?, ?, ?, ?, ?
       FROM connections WHERE id = ?`,
      ...[line.kind, line.why ?? line.user ?? null, line.first, line.last, line.count, connection],
    );
    this.#sql.run(
      `DELETE FROM history WHERE connection = ? AND number <=
       (SELECT number FROM history WHERE connection = ? ORDER BY number DESC LIMIT 1 OFFSET ?)`,
      ...[connection, connection, MAX_HISTORY_ENTRIES],
    );
  }

  #readNewest(connection: string, limit: number): HistoryRow[] {
    return this.#sql
      .all<unknown>('SELECT * FROM history WHERE connection = ? ORDER BY number DESC LIMIT ?', connection, limit)
      .flatMap((row) => {
        const read = v.safeParse(historyRow, row);
        return read.success ? [read.output] : [];
      })
      .toReversed();
  }
}

function toLine(row: HistoryRow): StoredHistoryEntry {
  const { first, last, count } = row;
  if (row.kind !== 'paired' && row.kind !== 'unpaired') return { kind: row.kind, why: row.why, first, last, count };
  return { kind: row.kind, why: null, first, last, count, ...(row.why !== null && { user: row.why }) };
}
