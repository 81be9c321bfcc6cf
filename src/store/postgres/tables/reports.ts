import type { TokenUsage, UsageStore } from '../../../core/appliances/usage.ts';
import {
  type HistoryStore,
  MAX_HISTORY_ENTRIES,
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
import type { SiteDatabase } from '../database/database.ts';
import type { Statements } from '../database/sql.ts';

/** The histories of a site. They have transactions of their own: only SQLite adds them to others, to spare the SD card. */
export class SiteHistory implements HistoryStore {
  /** The other hubs show the lines too. */
  readonly maxDelay = 60_000;
  readonly #database: SiteDatabase;

  constructor(database: SiteDatabase) {
    this.#database = database;
  }

  setSource(): void {}

  async lines(connection: string): Promise<StoredHistoryEntry[]> {
    const rows = await this.#database.read((sql) => readNewest(sql, connection, MAX_HISTORY_ENTRIES));
    return rows.map(toHistoryLine);
  }

  async add(lines: ReadonlyMap<string, readonly StoredHistoryEntry[]>): Promise<void> {
    await this.#database.write([], async (sql) => {
      for (const [connection, added] of lines) {
        // Two hubs that add lines to the same history do it one after the other.
        const found = await sql.run('SELECT FROM connections WHERE id = $1 FOR NO KEY UPDATE', connection);
        if (found > 0) for (const line of added) await addLine(sql, connection, line);
      }
      return true;
    });
  }
}

/** The newest lines of a connection, the oldest of them first. */
async function readNewest(sql: Statements, connection: string, limit: number): Promise<HistoryRow[]> {
  const rows = await sql.all<unknown>(
    'SELECT * FROM history WHERE connection = $1 ORDER BY number DESC LIMIT $2',
    ...[connection, limit],
  );
  return readHistoryRows(rows).toReversed();
}

async function addLine(sql: Statements, connection: string, added: StoredHistoryEntry): Promise<void> {
  const rows = await readNewest(sql, connection, MAX_MERGE_CANDIDATES);
  const { index, line } = placeHistoryEntry(rows.map(toHistoryLine), added);
  const row = rows[index];
  if (row !== undefined) {
    await sql.run(
      'UPDATE history SET first = $1, last = $2, count = $3 WHERE connection = $4 AND number = $5',
      ...[line.first, line.last, line.count, connection, row.number],
    );
    return;
  }
  await sql.run('DELETE FROM history WHERE connection = $1 AND number >= $2', connection, NUMBER_LIMIT);
  await sql.run(
    `INSERT INTO history (connection, number, kind, why, first, last, count)
     SELECT $1, coalesce(max(number), 0) + 1, $2, $3, $4::bigint, $5::bigint, $6::bigint FROM history WHERE connection = $1`,
    ...[connection, line.kind, whyColumn(line), line.first, line.last, line.count],
  );
  await sql.run(
    `DELETE FROM history WHERE connection = $1 AND number <=
       (SELECT number FROM history WHERE connection = $1 ORDER BY number DESC LIMIT 1 OFFSET $2)`,
    ...[connection, MAX_HISTORY_ENTRIES],
  );
}

/** How many tokens each hub of a site has issued. */
export class SiteUsage implements UsageStore {
  readonly #database: SiteDatabase;
  readonly #hubId: string;

  constructor(database: SiteDatabase, hubId: string) {
    this.#database = database;
    this.#hubId = hubId;
  }

  /** Does nothing, as that of {@link SiteHistory}. */
  setSource(): void {}

  async own(): Promise<ReadonlyMap<string, TokenUsage>> {
    const rows = await this.#database.read((sql) =>
      sql.all<unknown>('SELECT appliance, counts FROM usage WHERE hub = $1', this.#hubId),
    );
    return readUsage(rows);
  }

  async ofOthers(): Promise<ReadonlyMap<string, readonly TokenUsage[]>> {
    const rows = await this.#database.read((sql) =>
      sql.all<{ appliance: string }>('SELECT appliance, counts FROM usage WHERE hub <> $1', this.#hubId),
    );
    const ofAppliances = [...Map.groupBy(rows, ({ appliance }) => appliance)];
    return new Map(ofAppliances.map(([id, own]) => [id, own.flatMap((row) => [...readUsage([row]).values()])]));
  }

  async save(usage: ReadonlyMap<string, TokenUsage>): Promise<void> {
    await this.#database.write([], async (sql) => {
      await sql.run(
        `INSERT INTO usage (appliance, hub, counts)
         SELECT appliances.id, $1, given.counts FROM unnest($2::text[], $3::text[]) AS given (id, counts)
         JOIN appliances ON appliances.id = given.id ORDER BY appliances.id
         ON CONFLICT (appliance, hub) DO UPDATE SET counts = excluded.counts`,
        ...[this.#hubId, [...usage.keys()], [...usage.values()].map(usageColumn)],
      );
      return true;
    });
  }
}
