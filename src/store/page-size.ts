import { rmSync, writeFileSync } from 'node:fs';
import type Database from 'better-sqlite3';
import { replaceDatabase, type StoreFiles, sizeOf } from './store-files.ts';

/**
 * Bytes of a page of the database: what is changed is written in pages, to the journal at each commit and later to the
 * database. Why so many: docs/decisions/card-writes.md.
 */
const PAGE_SIZE = 1024;

/** Bytes of a page of this database. */
export function pageSize(database: Database.Database): number {
  return Number(database.pragma('page_size', { simple: true }));
}

/** Has an empty database made in such pages; any other stays as it is. */
export function choosePageSize(database: Database.Database): void {
  database.pragma(`page_size = ${PAGE_SIZE}`);
}

/**
 * Writes a database that has other pages anew, beside, and puts that in its place: a crash leaves the one or the other.
 * Where there is no room for it, it stays as it is.
 * @param database open for good, and not to be used any more where it was replaced
 * @param reopen opens what is in place then
 */
export function inChosenPages(
  files: StoreFiles,
  database: Database.Database,
  reopen: () => Database.Database,
): Database.Database {
  if (pageSize(database) === PAGE_SIZE) return database;
  try {
    // Made beforehand, because SQLite would let others read it.
    writeFileSync(files.successor, '', { mode: 0o600 });
    choosePageSize(database);
    database.prepare('VACUUM INTO ?').run(files.successor);
  } catch {
    rmSync(files.successor, { force: true });
    return database;
  }
  // It moves its journal to the database, and removes it; where it can't, the successor has no place beside it.
  database.close();
  try {
    if (sizeOf(files.journal) === null) replaceDatabase(files);
  } catch {
    // The database is as it was.
  }
  rmSync(files.successor, { force: true });
  return reopen();
}
