import type { TokenUsage, UsageStore } from '../../../core/appliances/usage.ts';
import {
  type HistoryStore,
  MAX_HISTORY_ENTRIES,
  placeHistoryEntry,
  type StoredHistoryEntry,
} from '../../../core/reports/history.ts';
import {
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

/** Named, because a prepared `SELECT *` fails when a newer hub has added a column. */
const HISTORY_COLUMNS = 'connection, number, kind, why, first, last, count';

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
    const rows = await this.#database.read((sql) =>
      sql.all<unknown>(
        `SELECT ${HISTORY_COLUMNS} FROM (SELECT ${HISTORY_COLUMNS} FROM history WHERE connection = $1
           ORDER BY number DESC LIMIT $2) AS newest ORDER BY number`,
        ...[connection, MAX_HISTORY_ENTRIES],
      ),
    );
    return readHistoryRows(rows).map(toHistoryLine);
  }

  async add(lines: ReadonlyMap<string, readonly StoredHistoryEntry[]>): Promise<void> {
    await this.#database.write([], async (sql) => {
      // Two hubs that add lines to the same history do it one after the other.
      const found = await sql.all<{ id: string }>(
        'SELECT id FROM connections WHERE id = ANY ($1) ORDER BY id FOR NO KEY UPDATE',
        [...lines.keys()],
      );
      await this.#addLines(sql, new Map(found.map(({ id }) => [id, lines.get(id) ?? []])));
      return true;
    });
  }

  async #addLines(sql: Statements, lines: ReadonlyMap<string, readonly StoredHistoryEntry[]>): Promise<void> {
    const stored = readHistoryRows(
      await sql.all<unknown>(
        `SELECT ${HISTORY_COLUMNS} FROM (
           SELECT ${HISTORY_COLUMNS}, row_number() OVER (PARTITION BY connection ORDER BY number DESC) AS rank
           FROM history WHERE connection = ANY ($1)) AS ranked
         WHERE rank <= $2 ORDER BY connection, number`,
        ...[[...lines.keys()], MAX_MERGE_CANDIDATES],
      ),
    );
    const byConnection = Map.groupBy(stored, ({ connection }) => connection);
    const changed = [...lines].flatMap(([connection, added]) => {
      const rows = byConnection.get(connection) ?? [];
      const before = rows.map(toHistoryLine);
      const last = rows.at(-1)?.number ?? 0;
      let after: readonly StoredHistoryEntry[] = before;
      for (const line of added) {
        const { index, line: placed } = placeHistoryEntry(after, line);
        after = after.toSpliced(index, 1, placed);
      }
      return after.flatMap((line, index) => {
        const number = rows[index]?.number ?? last + 1 + index - rows.length;
        return line === before[index] ? [] : [{ connection, number, line }];
      });
    });
    const column = <Value>(of: (each: (typeof changed)[number]) => Value) => changed.map(of);
    await sql.run(
      `INSERT INTO history (connection, number, kind, why, first, last, count)
       SELECT * FROM unnest($1::text[], $2::bigint[], $3::text[], $4::text[], $5::bigint[], $6::bigint[], $7::bigint[])
       ON CONFLICT (connection, number) DO UPDATE SET first = excluded.first, last = excluded.last, count = excluded.count`,
      column(({ connection }) => connection),
      column(({ number }) => number),
      column(({ line }) => line.kind),
      column(({ line }) => whyColumn(line)),
      column(({ line }) => line.first),
      column(({ line }) => line.last),
      column(({ line }) => line.count),
    );
    await sql.run(
      `DELETE FROM history USING unnest($1::text[]) AS changed (id)
       WHERE connection = changed.id AND (number >= $3 OR number <= (SELECT number FROM history
         WHERE connection = changed.id AND number < $3 ORDER BY number DESC LIMIT 1 OFFSET $2))`,
      ...[[...lines.keys()], MAX_HISTORY_ENTRIES, NUMBER_LIMIT],
    );
  }
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
