import type { PendingUsage, TokenUsage } from '../../../core/appliances/usage.ts';
import {
  MAX_HISTORY_ENTRIES,
  type PendingHistory,
  placeHistoryEntry,
  type StoredHistoryEntry,
} from '../../../core/reports/history.ts';
import {
  type HistoryRow,
  MAX_MERGE_CANDIDATES,
  NUMBER_LIMIT,
  readHistoryRows,
  readUsage,
  toHistoryLine,
  usageColumn,
  whyColumn,
} from '../../rows/report-rows.ts';
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
      ...[line.kind, whyColumn(line), line.first, line.last, line.count, connection],
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

/** The usage of the appliances as rows. They are not sealed: a wrong count has no consequence. */
export class UsageTable {
  readonly #sql: Sql;

  constructor(sql: Sql) {
    this.#sql = sql;
  }

  /** By the ids of the appliances; invalid rows are left out. */
  all(): ReadonlyMap<string, TokenUsage> {
    return readUsage(this.#sql.all<unknown>('SELECT appliance, counts FROM usage'));
  }

  /** Writes nothing for appliances that were removed. Runs several statements: call it in a transaction. */
  save(usage: ReadonlyMap<string, TokenUsage>): void {
    for (const [appliance, counts] of usage) {
      this.#sql.run(
        `INSERT INTO usage (appliance, counts) SELECT id, ? FROM appliances WHERE id = ?
         ON CONFLICT DO UPDATE SET counts = excluded.counts`,
        ...[usageColumn(counts), appliance],
      );
    }
  }
}

/** Something that waits for another write of its connection, because it is not worth its own transaction. */
export interface Companion {
  /** Writes it; call it in a transaction. */
  write(): void;
  /** Call this when that transaction has ended, before it is synced: what comes later is another companion. */
  markWritten(): void;
}

/** The pending history of each connection, and the pending usage of its appliances. */
export class Companions {
  readonly #history: HistoryTable;
  readonly #usage: UsageTable;
  historySource: PendingHistory | null = null;
  usageSource: PendingUsage | null = null;

  constructor(history: HistoryTable, usage: UsageTable) {
    this.#history = history;
    this.#usage = usage;
  }

  /** What can be written now together with something of this connection. @param connection its id */
  of(connection: string): readonly Companion[] {
    const { historySource, usageSource } = this;
    const companions: Companion[] = [];
    const lines = historySource?.pending(connection) ?? [];
    if (lines.length > 0) {
      companions.push({
        write: () => this.#history.add(connection, lines),
        markWritten: () => historySource?.markWritten(connection),
      });
    }
    const usage = usageSource?.pending(connection);
    if (usage !== undefined && usage.size > 0) {
      companions.push({
        write: () => this.#usage.save(usage),
        markWritten: () => usageSource?.markWritten(connection),
      });
    }
    return companions;
  }
}
