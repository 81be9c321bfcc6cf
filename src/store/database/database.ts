import { rmSync } from 'node:fs';
import Database from 'better-sqlite3';
import { Failure } from '../../core/failure.ts';
import type { Sealing } from '../keys/sealing.ts';
import { MIGRATIONS, migrate, readSchemaVersion } from './migrations.ts';
import { fileSize, type StoreFiles } from './store-files.ts';

const DISK_FULL_CODES = /^(SQLITE_FULL|ENOSPC|EDQUOT)$/;
/** SQLITE_ERROR: the schema is not what the version says. */
const DAMAGE_CODES = /^SQLITE_(CORRUPT|NOTADB|ERROR|MISMATCH)/;

/**
 * Bytes of a page of the database: what is changed is written in pages, to the journal at each commit and later to the
 * database. Why so many: docs/decisions/card-writes.md.
 */
const PAGE_BYTES = 1024;

/** Bytes that the journal holds before they are moved to the database: fourteen refreshes of tokens of 1.8 kB, 36 of short ones. */
const MAX_WAL_BYTES = 128 * 1024;

/** A database, ready to be served from. */
export interface OpenedDatabase {
  readonly database: Database.Database;
  /** What its rows are sealed with. */
  readonly sealing: Sealing;
  /** Why it is only a copy in memory, and nothing can be written; null where it is open for good. */
  readonly writeProblem: string | null;
  /** Says what was put in place of a damaged database; null where nothing was. */
  readonly recoverySummary: string | null;
}

/**
 * Opens the database for good, making or migrating it: WAL with `synchronous=FULL`, locked as long as it is open.
 * @param check looks at one of an older schema before it is migrated; where it throws, nothing is changed
 * @param steps the migrations
 * @throws Failure `store_unreadable`, `store_unwritable`, `store_locked`, `store_newer`, and as `check`
 */
export function openDatabase(
  files: StoreFiles,
  check: (found: Database.Database) => void = () => undefined,
  steps: readonly string[] = MIGRATIONS,
): Database.Database {
  const path = files.database;
  const before = fileSize(path);
  try {
    const database = new Database(path, { timeout: 2000 });
    try {
      database.pragma(`page_size = ${PAGE_BYTES}`);
      database.pragma('locking_mode = EXCLUSIVE');
      database.pragma('journal_mode = WAL');
      database.pragma('synchronous = FULL');
      // The journal takes its room beside the ballast, and what it holds is lost with it: it is kept short.
      database.pragma(`wal_autocheckpoint = ${MAX_WAL_BYTES / PAGE_BYTES}`);
      database.pragma('foreign_keys = ON');
      const version = readSchemaVersion(database, steps.length);
      if (version > 0 && version < steps.length) check(database);
      migrate(database, steps);
      return database;
    } catch (error) {
      database.close();
      throw error;
    }
  } catch (error) {
    // A first start on a full disk leaves an empty file, which the next one would take for a store that was lost.
    if (before === null && fileSize(path) === 0) rmSync(path, { force: true });
    throw toStoreFailure(error, path);
  }
}

/** An empty store in memory, to be filled. */
export function createInMemoryDatabase(): Database.Database {
  const database = new Database(':memory:');
  database.pragma(`page_size = ${PAGE_BYTES}`);
  database.pragma('foreign_keys = ON');
  migrate(database);
  return database;
}

/**
 * A database's content in memory, of the newest schema. It can be read, and every write fails.
 * @throws Failure `store_unreadable`, `store_newer`
 */
export function openInMemory(bytes: Uint8Array, path: string): Database.Database {
  try {
    const content = Buffer.from(bytes);
    // File format version 1 (https://sqlite.org/fileformat.html): a database in memory has no write-ahead log.
    content.fill(1, 18, 20);
    const database = new Database(content);
    migrate(database);
    database.pragma('query_only = ON');
    return database;
  } catch (error) {
    throw toStoreFailure(error, path);
  }
}

/** What SQLite or the file system threw, as a failure of the store at `path`. */
export function toStoreFailure(error: unknown, path: string): Failure {
  if (error instanceof Failure) return error;
  const cause = error instanceof Error ? error : new Error(String(error));
  const code = 'code' in cause ? String(cause.code) : '';
  const options = { cause, isWhole: true };
  if (code.startsWith('SQLITE_BUSY')) {
    return new Failure('store_locked', `another Latchkey has the store ${path} open: stop it first`, options);
  }
  if (DAMAGE_CODES.test(code)) {
    const what = `the store ${path} can't be read (${code}): put back a copy of the state directory`;
    return new Failure('store_unreadable', what, options);
  }
  const [what, advice] = DISK_FULL_CODES.test(code)
    ? ['the disk is full', 'make room']
    : [`it can't be written (${code || cause.message})`, 'see to the disk'];
  return new Failure('store_unwritable', `the store ${path}: ${what}`, { ...options, advice });
}
