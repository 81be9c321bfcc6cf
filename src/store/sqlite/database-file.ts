import type Database from 'better-sqlite3';
import type { Timers } from '../../core/clock.ts';
import { Failure } from '../../core/failure.ts';
import type { Sealing } from '../keys/sealing.ts';
import type { StoreFiles } from '../store-files.ts';
import { CommitQueue } from './commit-queue.ts';
import type { CommitTimes } from './commit-times.ts';
import type { OpenedDatabase } from './database.ts';
import { DatabaseSyncs } from './database-syncs.ts';
import { type Salvage, salvage, salvageInSlices } from './recovery/salvage.ts';
import { Sql } from './sql.ts';
import type { Companion } from './tables/report-tables.ts';

/**
 * The database of a store as a whole: SQLite in `latchkey.db`, with a WAL, and synced so that commits survive a power
 * cut. It is locked as long as it is open, because two hubs must not use the same refresh tokens.
 */
export abstract class DatabaseFile implements Disposable, AsyncDisposable {
  readonly files: StoreFiles;
  protected readonly sql: Sql;
  protected readonly commits: CommitQueue;
  readonly #reopen: (sealing: Sealing) => Promise<OpenedDatabase>;
  #opened: OpenedDatabase;
  #syncs: DatabaseSyncs;

  /** @param reopen opens the database again after it could not be written */
  constructor(
    files: StoreFiles,
    opened: OpenedDatabase,
    reopen: (sealing: Sealing) => Promise<OpenedDatabase>,
    timers: Timers,
  ) {
    this.files = files;
    this.sql = new Sql(opened.database, opened.sealing, files.database);
    this.#syncs = new DatabaseSyncs(files, opened.database);
    const companionsOf = (connection: string) => this.companionsOf(connection);
    this.commits = new CommitQueue({ sql: this.sql, syncs: () => this.#syncs, companionsOf }, timers);
    this.#opened = opened;
    this.#reopen = reopen;
  }

  /** What can be written now together with a write of this connection. */
  protected abstract companionsOf(connection: string): readonly Companion[];

  /** What its rows are sealed with. */
  get sealing(): Sealing {
    return this.sql.sealing;
  }

  /** Why nothing can be written, and all is served from memory; null if the store can be written. */
  get writeProblem(): string | null {
    return this.#opened.writeProblem;
  }

  /** What replaced a damaged database, in one sentence; null if nothing did. */
  get recoverySummary(): string | null {
    return this.#opened.recoverySummary;
  }

  /** How long its commits take. */
  get commitTimes(): CommitTimes {
    return this.commits.times;
  }

  /** How many rows were changed since the database was opened. */
  get changeCount(): number {
    return this.sql.get<{ changes: number }>('SELECT total_changes() AS changes')?.changes ?? 0;
  }

  /** All rows as they are at one moment. */
  readAllRows(): Salvage {
    return salvage(this.#opened.database, [this.sealing]);
  }

  /** Like {@link readAllRows}; the rows are as they were when it was called. */
  readAllRowsInSlices(): Promise<Salvage> {
    return salvageInSlices(this.#opened.database, this.sealing);
  }

  /**
   * The whole database as the bytes of a file, after the WAL was moved to it. So a database that has less than its
   * snapshot has lost something.
   * @throws Failure `store_unwritable`
   */
  serialize(): Promise<Buffer> {
    return this.commits.exclusively(async () => {
      await this.#syncs.checkpoint();
      return this.#syncs.readDatabase();
    });
  }

  /**
   * Seals all rows with another key, all or none, and uses that key for later writes. Rows that something else has
   * changed, or that can't be opened, stay as they are.
   * @throws Failure `store_unwritable`; `store_unreadable` if the database is damaged. Nothing has changed then.
   */
  reseal(sealing: Sealing): Promise<void> {
    return this.commits.exclusively(() => {
      const { database } = this.#opened;
      this.sql.transaction(() => {
        const content = salvage(database, [this.sealing], sealing);
        if (content.damage !== null) {
          const { database: path } = this.files;
          throw new Failure(
            'store_unreadable',
            `the store ${path} is damaged (${content.damage}): restart the hub first`,
          );
        }
        updateSealedColumns(database, content);
      });
      this.sql.switchTo(database, sealing);
    });
  }

  /** Rewrites the database, so that its unused space contains no old data. @throws Failure `store_unwritable` */
  compact(): Promise<void> {
    return this.commits.exclusively(async () => {
      this.#syncs.commit(() => this.#opened.database.exec('VACUUM'));
      await this.#syncs.checkpoint();
    });
  }

  /**
   * Moves the WAL to the database, so that the WAL contains no write any more, not even a failed one.
   * @throws Failure `store_unwritable`
   */
  checkpoint(): Promise<void> {
    return this.commits.exclusively(() => this.#syncs.checkpoint());
  }

  /**
   * Checks whether a store that could not be written can be written now.
   * @returns whether it can
   * @throws Failure as when the store is opened
   */
  async tryReopen(): Promise<boolean> {
    if (this.#opened.writeProblem === null) return true;
    return this.commits.exclusively(async () => {
      const before = this.#opened;
      const opened = await this.#reopen(this.sealing);
      this.#opened = { ...opened, recoverySummary: opened.recoverySummary ?? before.recoverySummary };
      this.#syncs = new DatabaseSyncs(this.files, opened.database);
      this.sql.switchTo(opened.database, opened.sealing);
      before.database.close();
      return opened.writeProblem === null;
      // All writes to what is served from memory have failed.
    }, false);
  }

  /** Closes the database after everything that is queued was written. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.commits.drain();
    // SQLite would do this in the thread that still answers appliances.
    if (this.writeProblem === null) await this.checkpoint().catch(() => undefined);
    this[Symbol.dispose]();
  }

  /** Closes the database at once. */
  [Symbol.dispose](): void {
    this.#syncs.close();
  }
}

/** The tables with sealed rows, and the column that identifies a row. */
const SEALED_TABLES = {
  settings: 'name',
  connections: 'id',
  appliances: 'id',
  grants: 'connection',
  pairings: 'id',
  sessions: 'hash',
  invites: 'hash',
} as const;

/** Writes the sealed column of rows that are otherwise unchanged. */
function updateSealedColumns(database: Database.Database, content: Salvage): void {
  for (const table of Object.keys(SEALED_TABLES) as (keyof typeof SEALED_TABLES)[]) {
    const key = SEALED_TABLES[table];
    const statement = database.prepare(`UPDATE ${table} SET sealed = ? WHERE ${key} = ?`);
    for (const row of content[table].values()) statement.run(row.sealed, Reflect.get(row, key));
  }
}
