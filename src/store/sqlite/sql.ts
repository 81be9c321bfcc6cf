import type Database from 'better-sqlite3';
import type { Failure } from '../../core/failure.ts';
import type { Sealing } from '../keys/sealing.ts';
import { toStoreFailure } from './database.ts';

/**
 * Prepared statements of a database, and what its rows are sealed with.
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

  /** Continues with another database, or with the same one after its rows were sealed again. */
  switchTo(database: Database.Database, sealing: Sealing): void {
    if (database !== this.#database) this.#statements.clear();
    this.#database = database;
    this.#sealing = sealing;
  }

  /** @returns whether a row was changed */
  run(sql: string, ...values: unknown[]): boolean {
    return this.#wrapErrors(() => this.#prepare(sql).run(...values).changes > 0);
  }

  get<Row>(sql: string, ...values: unknown[]): Row | undefined {
    return this.#wrapErrors(() => this.#prepare(sql).get(...values) as Row | undefined);
  }

  all<Row>(sql: string, ...values: unknown[]): Row[] {
    return this.#wrapErrors(() => this.#prepare(sql).all(...values) as Row[]);
  }

  /** Runs statements in a transaction: if `work` throws, nothing has changed. */
  transaction<Result>(work: () => Result): Result {
    return this.#wrapErrors(() => this.#database.transaction(work).immediate());
  }

  /** Converts errors of SQLite and the file system to failures of the store. */
  #wrapErrors<Result>(work: () => Result): Result {
    try {
      return work();
    } catch (error) {
      throw this.toFailure(error);
    }
  }

  /** Converts an error of SQLite or the file system to a failure of the store. */
  toFailure(error: unknown): Failure {
    return toStoreFailure(error, this.#path);
  }

  #prepare(sql: string): Database.Statement<unknown[]> {
    const cached = this.#statements.get(sql);
    if (cached !== undefined) return cached;
    const statement = this.#database.prepare(sql);
    this.#statements.set(sql, statement);
    return statement;
  }
}
