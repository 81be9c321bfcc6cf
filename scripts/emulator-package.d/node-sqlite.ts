// Stands in for better-sqlite3 in the npm package of the emulator, which has no native modules: the part of its
// interface that the emulator's state file uses, over Node's own SQLite.
import { DatabaseSync, type SQLInputValue, type StatementSync } from 'node:sqlite';

/** The result codes that the state file tells apart (https://sqlite.org/rescode.html). */
const CODES: Readonly<Record<number, string>> = { 5: 'SQLITE_BUSY', 14: 'SQLITE_CANTOPEN', 26: 'SQLITE_NOTADB' };

/** A database, as `better-sqlite3` has it. */
export default class Database {
  readonly #database: DatabaseSync;

  /** @param timeout how long to wait for another process that uses the file, in ms */
  constructor(path: string, { timeout }: { readonly timeout: number }) {
    this.#database = withCodes(() => new DatabaseSync(path));
    this.exec(`PRAGMA busy_timeout = ${timeout}`);
  }

  /** Runs a pragma. @returns the first column of its first row */
  pragma(text: string): unknown {
    return this.prepare(`PRAGMA ${text}`).pluck().get();
  }

  prepare(sql: string): Statement {
    return new Statement(withCodes(() => this.#database.prepare(sql)));
  }

  exec(sql: string): void {
    withCodes(() => this.#database.exec(sql));
  }

  /** A function that runs `work` in a transaction. */
  transaction(work: () => void): () => void {
    return () => {
      this.exec('BEGIN');
      try {
        work();
        this.exec('COMMIT');
      } catch (error) {
        this.exec('ROLLBACK');
        throw error;
      }
    };
  }

  close(): void {
    this.#database.close();
  }
}

class Statement {
  readonly #statement: StatementSync;

  constructor(statement: StatementSync) {
    this.#statement = statement;
  }

  /** Rows are their first column. */
  pluck(): { get(): unknown } {
    return { get: () => withCodes(() => Object.values(this.#statement.get() ?? {})[0]) };
  }

  run(...values: SQLInputValue[]): void {
    withCodes(() => this.#statement.run(...values));
  }
}

/** Gives an error of SQLite the `code` that better-sqlite3 gives it. */
function withCodes<Result>(work: () => Result): Result {
  try {
    return work();
  } catch (error) {
    if (error instanceof Error && 'errcode' in error) {
      const code = Number(error.errcode) & 0xff;
      Object.assign(error, { code: CODES[code] ?? `SQLITE_ERROR_${code}` });
    }
    throw error;
  }
}
