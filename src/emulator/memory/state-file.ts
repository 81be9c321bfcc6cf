import { randomBytes } from 'node:crypto';
import { closeSync, openSync } from 'node:fs';
import Database from 'better-sqlite3';
import * as v from 'valibot';
import type { AuthenticationNotes, GrantNotes } from '../audit/client-audit.ts';
import type { AuthorizationCode } from '../oauth/authorization-codes.ts';
import type { Grant } from '../oauth/grants.ts';
import type { HelperRun } from '../oauth/helper-runs.ts';
import type { PersistentMap } from './bounded.ts';
import { authenticationsFormat, codeFormat, type Format, grantFormat, notesFormat, runFormat } from './kept-formats.ts';
import { type Memory, StateFileError } from './memory.ts';

/** Says in a SQLite file whose it is: "LKem". */
const APPLICATION_ID = 0x4c4b656d;

/** The schema, in `user_version`. */
const VERSION = 1;

const TABLES = ['grants', 'codes', 'runs', 'notes', 'authentications'] as const;
type Table = (typeof TABLES)[number];

const SCHEMA = `
  CREATE TABLE settings (name TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT, WITHOUT ROWID;
  ${TABLES.map((name) => `CREATE TABLE ${name} (number INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, value TEXT NOT NULL) STRICT;`).join('\n  ')}
  PRAGMA application_id = ${APPLICATION_ID};
  PRAGMA user_version = ${VERSION};`;

/**
 * Keeps the emulator's state in a file (SQLite, WAL, mode 0600), so that it outlives the process: every write is done
 * when its call returns, and so before the answer goes out that it belongs to. `synchronous` is NORMAL: what was
 * written outlives a kill of the process; a power cut may take the last writes along, which is enough for an emulator.
 * One emulator has the file at a time.
 */
export class StateFile implements Memory {
  readonly grants: PersistentMap<Grant>;
  readonly codes: PersistentMap<AuthorizationCode>;
  readonly runs: PersistentMap<HelperRun>;
  readonly notes: PersistentMap<GrantNotes>;
  readonly authentications: PersistentMap<AuthenticationNotes>;
  readonly #database: Database.Database;

  private constructor(database: Database.Database) {
    this.#database = database;
    this.grants = this.#table('grants', grantFormat);
    this.codes = this.#table('codes', codeFormat);
    this.runs = this.#table('runs', runFormat);
    this.notes = this.#table('notes', notesFormat);
    this.authentications = this.#table('authentications', authenticationsFormat);
  }

  /**
   * Opens a state file, or makes it.
   * @throws StateFileError where it can't be opened, is no state file, is in use, or another version wrote it
   */
  static open(path: string): StateFile {
    let database: Database.Database | null = null;
    try {
      closeSync(openSync(path, 'a', 0o600));
      database = new Database(path, { timeout: 500 });
      database.pragma('locking_mode = EXCLUSIVE');
      prepare(database, path);
      database.pragma('journal_mode = WAL');
      database.pragma('synchronous = NORMAL');
      return new StateFile(database);
    } catch (error) {
      database?.close();
      throw error instanceof StateFileError ? error : unusable(path, error);
    }
  }

  key(purpose: 'states' | 'tokens'): Buffer {
    const kept = this.setting(`key/${purpose}`);
    return kept === null ? this.newKey(purpose) : Buffer.from(kept, 'base64url');
  }

  newKey(purpose: 'states' | 'tokens'): Buffer {
    const key = randomBytes(32);
    this.keepSetting(`key/${purpose}`, key.toString('base64url'));
    return key;
  }

  setting(name: string): string | null {
    const row = this.#database.prepare('SELECT value FROM settings WHERE name = ?').get(name);
    return row === undefined ? null : v.parse(v.object({ value: v.string() }), row).value;
  }

  keepSetting(name: string, value: string): void {
    this.#database.prepare('INSERT OR REPLACE INTO settings VALUES (?, ?)').run(name, value);
  }

  together<Result>(work: () => Result): Result {
    return this.#database.transaction(work)();
  }

  end(): void {
    this.#database.close();
  }

  #table<T>(name: Table, format: Format<T>): PersistentMap<T> {
    const database = this.#database;
    // A row that is replaced gets the highest number: the order is that of the last writes.
    const put = database.prepare(`INSERT OR REPLACE INTO ${name} (id, value) VALUES (?, ?)`);
    const remove = database.prepare(`DELETE FROM ${name} WHERE id = ?`);
    return {
      *load(): Generator<[string, T]> {
        for (const row of database.prepare(`SELECT id, value FROM ${name} ORDER BY number`).all()) {
          const { id, value } = v.parse(v.object({ id: v.string(), value: v.string() }), row);
          yield [id, read(format, value, database.name)];
        }
      },
      put: (key, value) => {
        put.run(key, format.write(value));
      },
      remove: (key) => {
        remove.run(key);
      },
      clear: () => {
        database.exec(`DELETE FROM ${name}`);
      },
    };
  }
}

function read<T>(format: Format<T>, value: string, path: string): T {
  try {
    return format.read(value);
  } catch (error) {
    throw new StateFileError(`the state ${path} is damaged: choose another file`, { cause: error });
  }
}

/** Makes sure that the file is the emulator's and of this version; an empty one becomes it. */
function prepare(database: Database.Database, path: string): void {
  const id = database.pragma('application_id', { simple: true });
  const version = Number(database.pragma('user_version', { simple: true }));
  const tables = database.prepare('SELECT count(*) FROM sqlite_schema').pluck().get();
  if (id === 0 && version === 0 && tables === 0) {
    database.transaction(() => database.exec(SCHEMA))();
    return;
  }
  if (id !== APPLICATION_ID) {
    throw new StateFileError(`the file ${path} is no state of an emulator: choose another one`);
  }
  if (version !== VERSION) {
    throw new StateFileError(
      `the state ${path} was written by another version (schema ${version}, known is ${VERSION}): choose another file`,
    );
  }
}

function unusable(path: string, error: unknown): StateFileError {
  const code = error instanceof Error && 'code' in error ? String(error.code) : '';
  if (code === 'SQLITE_NOTADB') {
    return new StateFileError(`the file ${path} is no state of an emulator: choose another one`, { cause: error });
  }
  if (code.startsWith('SQLITE_BUSY')) {
    return new StateFileError(`another emulator has the state ${path}: stop it, or choose another file`, {
      cause: error,
    });
  }
  return new StateFileError(`the state ${path} can't be opened (${code || error}): choose another file`, {
    cause: error,
  });
}
