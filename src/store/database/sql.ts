import type Database from 'better-sqlite3';
import { Failure } from '../../core/failure.ts';
import type { Sealing } from '../keys/sealing.ts';
import { toStoreFailure } from './database.ts';

/**
 * Statements on a database, each prepared once, and what its rows are sealed with.
 *
 * Every method throws a Failure `store_unwritable` or `store_unreadable`.
 */
export class Sql {
  readonly #path: string;
  readonly #statements = new Map<string, Database.Statement<unknown[]>>();
  #database: Database.Database;
  #sealing: Sealing;

  /** @param path names the database in failures */
  constructor(database: Database.Database, sealing: Sealing, path: string) {
    this.#database = database;
    this.#sealing = sealing;
    this.#path = path;
  }

  get sealing(): Sealing {
    return this.#sealing;
  }

  /** Goes on with another database, or one that is sealed anew. */
  switchTo(database: Database.Database, sealing: Sealing): void {
    if (database !== this.#database) this.#statements.clear();
    this.#database = database;
    this.#sealing = sealing;
  }

  /** @returns whether a row was changed */
  run(sql: string, ...values: unknown[]): boolean {
    return this.wrapErrors(() => this.#prepare(sql).run(...values).changes > 0);
  }

  /** As {@link run}, where it can wait for a store that can be written. */
  runIfWritable(sql: string, ...values: unknown[]): void {
    try {
      this.run(sql, ...values);
    } catch (error) {
      if (!(error instanceof Failure)) throw error;
    }
  }

  get<Row>(sql: string, ...values: unknown[]): Row | undefined {
    return this.wrapErrors(() => this.#prepare(sql).get(...values) as Row | undefined);
  }

  all<Row>(sql: string, ...values: unknown[]): Row[] {
    return this.wrapErrors(() => this.#prepare(sql).all(...values) as Row[]);
  }

  /** Runs statements that are all done or none: where `work` throws, nothing was. */
  transaction<Result>(work: () => Result): Result {
    return this.wrapErrors(() => this.#database.transaction(work).immediate());
  }

  /** Runs what may throw an error of SQLite's or of the file system's. */
  wrapErrors<Result>(work: () => Result): Result {
    try {
      return work();
    } catch (error) {
      throw toStoreFailure(error, this.#path);
    }
  }

  #prepare(sql: string): Database.Statement<unknown[]> {
    const kept = this.#statements.get(sql);
    if (kept !== undefined) return kept;
    const statement = this.#database.prepare(sql);
    this.#statements.set(sql, statement);
    return statement;
  }
}
