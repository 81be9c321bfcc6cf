import { MAX_HISTORY_ENTRIES, placeHistoryEntry, type StoredHistoryEntry } from '../../../core/reports/history.ts';
import {
  type HistoryRow,
  MAX_MERGE_CANDIDATES,
  NUMBER_LIMIT,
  readHistoryRows,
  toHistoryLine,
} from '../../rows/history-row.ts';
import type { Sql } from '../sql.ts';

/** The history of the connections as rows. */
export class HistoryTable {
  readonly #sql: Sql;

  constructor(sql: Sql) {
    this.#sql = sql;
  }

  /** The oldest first; invalid rows are left out. */
  list(connection: string): StoredHistoryEntry[] {
    return this.#readNewest(connection, MAX_HISTORY_ENTRIES).map(toHistoryLine);
  }

  /** Runs several statements: call it in a transaction. Writes nothing for a connection that was removed. */
  add(connection: string, lines: readonly StoredHistoryEntry[]): void {
    for (const line of lines) this.#addOne(connection, line);
  }

  #addOne(connection: string, next: StoredHistoryEntry): void {
    const rows = this.#readNewest(connection, MAX_MERGE_CANDIDATES);
    const { index, line } = placeHistoryEntry(rows.map(toHistoryLine), next);
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
    const rows = this.#sql.all<unknown>(
      'SELECT * FROM history WHERE connection = ? ORDER BY number DESC LIMIT ?',
      ...[connection, limit],
    );
    return readHistoryRows(rows).toReversed();
  }
}
