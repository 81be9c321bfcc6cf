import { rmSync } from 'node:fs';
import Database from 'better-sqlite3';
import { Failure } from '../../core/failure.ts';
import type { Sealing } from '../keys/sealing.ts';
import { fileSize, type StoreFiles } from '../store-files.ts';
import { prepareSchema } from './schema.ts';

/** Codes of SQLite and of the file system. */
const DISK_FULL_CODES = /^(SQLITE_FULL|ENOSPC|EDQUOT)$/;
/** SQLITE_ERROR: the schema is not that of the version. */
const DAMAGE_CODES = /^SQLITE_(CORRUPT|NOTADB|ERROR|MISMATCH)/;

/**
 * Bytes of a page of the database. Changes are written as whole pages, to the WAL at each commit and later to the
 * database. docs/decisions/card-writes.md explains the size.
 */
const PAGE_BYTES = 1024;

/**
 * Bytes of the WAL before it is moved to the database: fourteen refreshes with tokens of 1.8 kB, or 36 with short ones.
 * Kept short: the WAL needs space in addition to the ballast, and losing the WAL loses what it holds.
 */
export const MAX_WAL_BYTES = 128 * 1024;

/** A database that is ready for use. */
export interface OpenedDatabase {
  readonly database: Database.Database;
  /** What its rows are sealed with. */
  readonly sealing: Sealing;
  /** Why it is only a copy in memory, and nothing can be written; null if the file itself is open. */
  readonly writeProblem: string | null;
  /** What replaced a damaged database, in one sentence; null if nothing did. */
  readonly recoverySummary: string | null;
}

/**
 * Opens the database file, or creates it: with a WAL, and locked as long as it is open. SQLite syncs what
 * {@link DatabaseSyncs} does not.
 * @throws Failure `store_unreadable`, `store_unwritable`, `store_locked`, `store_schema_unknown`
 */
export function openDatabase(files: StoreFiles): Database.Database {
  const path = files.database;
  const before = fileSize(path);
  try {
    const database = new Database(path, { timeout: 2000 });
    try {
      database.pragma(`page_size = ${PAGE_BYTES}`);
      database.pragma('locking_mode = EXCLUSIVE');
      database.pragma('journal_mode = WAL');
      database.pragma('synchronous = FULL');
      // DatabaseSyncs moves the WAL to the database.
      database.pragma('wal_autocheckpoint = 0');
      prepareSchema(database, path);
      return database;
    } catch (error) {
      database.close();
      throw error;
    }
  } catch (error) {
    // A first start on a full disk leaves an empty file, which the next start would take for a lost store.
    if (before === null && fileSize(path) === 0) rmSync(path, { force: true });
    throw toStoreFailure(error, path);
  }
}

/** Creates an empty store in memory. */
export function createInMemoryDatabase(): Database.Database {
  const path = ':memory:';
  const database = new Database(path);
  database.pragma(`page_size = ${PAGE_BYTES}`);
  prepareSchema(database, path);
  return database;
}

/**
 * Opens the content of a database in memory. It can be read, and every write fails.
 * @param path names the database in failures
 * @throws Failure `store_unreadable`, `store_schema_unknown`
 */
export function openInMemory(bytes: Uint8Array, path: string): Database.Database {
  try {
    const content = Buffer.from(bytes);
    // File format version 1 (https://sqlite.org/fileformat.html): a database in memory has no write-ahead log.
    content.fill(1, 18, 20);
    const database = new Database(content);
    prepareSchema(database, path);
    database.pragma('query_only = ON');
    return database;
  } catch (error) {
    throw toStoreFailure(error, path);
  }
}

/** Whether an error of SQLite or the file system says that there is no room for a write. */
export function isDiskFull(error: unknown): boolean {
  const cause = error instanceof Failure ? error.cause : error;
  return cause instanceof Error && 'code' in cause && DISK_FULL_CODES.test(String(cause.code));
}

/** Converts an error of SQLite or the file system to a failure of the store at `path`. */
export function toStoreFailure(error: unknown, path: string): Failure {
  if (error instanceof Failure) return error;
  const cause = error instanceof Error ? error : new Error(String(error));
  const code = 'code' in cause ? String(cause.code) : '';
  const options = { cause, includesCause: true };
  if (code.startsWith('SQLITE_BUSY')) {
    return new Failure('store_locked', `another Latchkey has the store ${path} open: stop it first`, options);
  }
  if (DAMAGE_CODES.test(code)) {
    const what = `the store ${path} can't be read (${code}): restore a copy of the state directory`;
    return new Failure('store_unreadable', what, options);
  }
  const [what, advice] = DISK_FULL_CODES.test(code)
    ? ['the disk is full', 'make room']
    : [`it can't be written (${code || cause.message})`, 'check the disk'];
  return new Failure('store_unwritable', `the store ${path}: ${what}`, { ...options, advice });
}
