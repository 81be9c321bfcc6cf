import type Database from 'better-sqlite3';
import { Failure } from '../../core/failure.ts';
import type { Sealing } from '../keys/sealing.ts';
import { type Salvage, salvage } from '../recovery/salvage.ts';
import type { OpenedDatabase } from './database.ts';
import { Sql } from './sql.ts';
import type { StoreFiles } from './store-files.ts';

/**
 * The database of a store as a whole: SQLite in `latchkey.db`, WAL with `synchronous=FULL`, so that what was committed
 * outlives a power cut. It is locked as long as it is open: two hubs must not live on one family of tokens.
 */
export class DatabaseFile implements Disposable {
  readonly files: StoreFiles;
  protected readonly sql: Sql;
  readonly #reopen: (sealing: Sealing) => Promise<OpenedDatabase>;
  #opened: OpenedDatabase;

  /** @param reopen opens it anew, for one that can't be written for now */
  constructor(files: StoreFiles, opened: OpenedDatabase, reopen: (sealing: Sealing) => Promise<OpenedDatabase>) {
    this.files = files;
    this.sql = new Sql(opened.database, opened.sealing, files.database);
    this.#opened = opened;
    this.#reopen = reopen;
  }

  /** What its rows are sealed with. */
  get sealing(): Sealing {
    return this.sql.sealing;
  }

  /** Why nothing can be written, and all is served from memory; null where it can. */
  get writeProblem(): string | null {
    return this.#opened.writeProblem;
  }

  /** What was put in place of a damaged database, in one sentence; null where nothing was. */
  get recoverySummary(): string | null {
    return this.#opened.recoverySummary;
  }

  /** How many rows were changed since it was opened. */
  get changeCount(): number {
    return this.sql.get<{ changes: number }>('SELECT total_changes() AS changes')?.changes ?? 0;
  }

  /** All rows as they are at one moment. */
  readAllRows(): Salvage {
    return salvage(this.#opened.database, [this.sealing]);
  }

  /**
   * Copies the whole database to another file, and then moves the journal to the database: so a database that has less
   * than its copy has lost something.
   */
  async copyDatabase(path: string): Promise<void> {
    await this.#opened.database.backup(path);
    this.checkpoint();
  }

  /**
   * Seals everything anew, all of it or nothing, and whatever is written from now on. What was changed by somebody
   * else, or can't be opened, stays so.
   * @throws Failure `store_unwritable`, `store_unreadable` where the database is damaged; nothing has changed then
   */
  reseal(sealing: Sealing): void {
    const { database } = this.#opened;
    this.sql.transaction(() => {
      const content = salvage(database, [this.sealing], sealing);
      if (content.damage !== null) {
        const { database: path } = this.files;
        throw new Failure(
          'store_unreadable',
          `the store ${path} is damaged (${content.damage}): start the hub again first`,
        );
      }
      updateSealedColumns(database, content);
    });
    this.sql.switchTo(database, sealing);
  }

  /** Writes the database anew, so that nothing of before is left in room that it does not use. */
  compact(): void {
    this.sql.wrapErrors(() => this.#opened.database.exec('VACUUM'));
    this.checkpoint();
  }

  /** Moves the journal to the database: nothing that was written, or was to be, is left in it. */
  checkpoint(): void {
    this.sql.wrapErrors(() => this.#opened.database.pragma('wal_checkpoint(TRUNCATE)'));
  }

  /**
   * Looks whether a store that could not be written can be now.
   * @returns whether it can
   * @throws Failure as the store is opened
   */
  async tryReopen(): Promise<boolean> {
    if (this.#opened.writeProblem === null) return true;
    const before = this.#opened;
    const opened = await this.#reopen(this.sealing);
    this.#opened = { ...opened, recoverySummary: opened.recoverySummary ?? before.recoverySummary };
    this.sql.switchTo(opened.database, opened.sealing);
    before.database.close();
    return opened.writeProblem === null;
  }

  [Symbol.dispose](): void {
    this.#opened.database.close();
  }
}

/** The tables whose rows are sealed, with the column that names a row. */
const SEALED_TABLES = {
  settings: 'name',
  appliances: 'id',
  grants: 'appliance',
  pairings: 'id',
  sessions: 'hash',
  invites: 'hash',
} as const;

/** Writes what is sealed of rows that are as they were read. */
function updateSealedColumns(database: Database.Database, content: Salvage): void {
  for (const table of Object.keys(SEALED_TABLES) as (keyof typeof SEALED_TABLES)[]) {
    const key = SEALED_TABLES[table];
    const statement = database.prepare(`UPDATE ${table} SET sealed = ? WHERE ${key} = ?`);
    for (const row of content[table].values()) statement.run(row.sealed, Reflect.get(row, key));
  }
}
