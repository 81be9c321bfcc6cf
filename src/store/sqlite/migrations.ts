import type { Database } from 'better-sqlite3';
import { Failure } from '../../core/failure.ts';
import type { Sealing } from '../keys/sealing.ts';
import { addConnections } from './connections-migration.ts';

/**
 * SQL, or a function for a step that also needs the keys of the store. The function reads, and returns what writes in the
 * transaction: once a transaction has read a damaged page, every later statement of it fails.
 */
export type Migration = string | ((database: Database, keys: readonly Sealing[]) => () => void);

/**
 * The history of the schema: entry N - 1 migrates from version N - 1 to N. A database's version is its `user_version`.
 * Released steps are never changed.
 */
export const MIGRATIONS: readonly Migration[] = [
  `CREATE TABLE settings (
     name TEXT PRIMARY KEY,
     sealed TEXT NOT NULL
   ) STRICT, WITHOUT ROWID;
   -- In every table the column sealed is encrypted and authenticated with the row's identity (sealing.ts).
   CREATE TABLE appliances (
     id TEXT PRIMARY KEY,
     name TEXT NOT NULL UNIQUE,
     client_id TEXT NOT NULL UNIQUE,
     portal TEXT NOT NULL,
     scope TEXT,
     sealed TEXT NOT NULL
   ) STRICT, WITHOUT ROWID;
   -- A deleted grant keeps its generation, so that a late response can't become its successor.
   CREATE TABLE grants (
     appliance TEXT PRIMARY KEY REFERENCES appliances (id) ON DELETE CASCADE,
     generation INTEGER NOT NULL,
     sealed TEXT,
     attempt TEXT,
     doubt TEXT,
     refused TEXT,
     distrusted TEXT,
     misconfigured TEXT
   ) STRICT, WITHOUT ROWID;
   CREATE TABLE pairings (
     number INTEGER PRIMARY KEY,
     id TEXT NOT NULL UNIQUE,
     appliance TEXT NOT NULL REFERENCES appliances (id) ON DELETE CASCADE,
     step TEXT NOT NULL,
     sealed TEXT NOT NULL
   ) STRICT;
   CREATE INDEX pairings_of_appliance ON pairings (appliance, number);
   CREATE TABLE sessions (
     number INTEGER PRIMARY KEY,
     hash TEXT NOT NULL UNIQUE,
     appliance TEXT NOT NULL REFERENCES appliances (id) ON DELETE CASCADE,
     device TEXT NOT NULL UNIQUE,
     sealed TEXT NOT NULL
   ) STRICT;
   CREATE INDEX sessions_of_appliance ON sessions (appliance, number);
   CREATE TABLE invites (
     hash TEXT PRIMARY KEY,
     sealed TEXT NOT NULL
   ) STRICT, WITHOUT ROWID;
   -- One b-tree and no index, so that a line takes one page. Times in ms since 1970.
   CREATE TABLE history (
     appliance TEXT NOT NULL REFERENCES appliances (id) ON DELETE CASCADE,
     number INTEGER NOT NULL,
     kind TEXT NOT NULL,
     why TEXT,
     first INTEGER NOT NULL,
     last INTEGER NOT NULL,
     count INTEGER NOT NULL,
     PRIMARY KEY (appliance, number)
   ) STRICT, WITHOUT ROWID;`,
  addConnections,
];

/** The newest schema version. Packages use it to keep a newer store from an older Latchkey. */
export const NEWEST_SCHEMA = MIGRATIONS.length;

/** No Latchkey will ever have a higher version; a higher number is damage. */
const MAX_SCHEMA_VERSION = 9999;

/**
 * Migrates a database, also an empty one, to the newest schema, with one transaction for each step, and then enforces
 * its foreign keys.
 * @param keys the keys that may open its rows
 * @param steps all steps, from schema 0 on
 * @throws Failure as {@link readSchemaVersion}, and SQLite's errors
 */
export function migrate(database: Database, keys: readonly Sealing[], steps: readonly Migration[] = MIGRATIONS): void {
  const version = readSchemaVersion(database, steps.length);
  // A step may replace a table that others refer to. In a transaction this pragma has no effect.
  database.pragma('foreign_keys = OFF');
  for (const [index, step] of steps.entries()) {
    if (index < version) continue;
    const write = typeof step === 'string' ? () => database.exec(step) : step(database, keys);
    database.transaction(() => {
      write();
      database.pragma(`user_version = ${index + 1}`);
    })();
  }
  database.pragma('foreign_keys = ON');
}

/**
 * The schema version of a database, 0 for an empty one.
 * @param newest the newest known version
 * @throws Failure `store_newer` if a newer Latchkey has written it, `store_unreadable` if the version is invalid
 */
export function readSchemaVersion(database: Database, newest: number): number {
  const version = Number(database.pragma('user_version', { simple: true }));
  if (version < 0 || version > MAX_SCHEMA_VERSION) {
    throw new Failure(
      'store_unreadable',
      `the store has schema ${version}, which does not exist: the store is damaged, so restore a copy of the state directory`,
    );
  }
  if (version > newest) {
    throw new Failure(
      'store_newer',
      `the store has schema ${version}, written by a newer Latchkey; this one knows schemas up to ${newest}: install the newer version again, or restore a copy of the state directory`,
    );
  }
  return version;
}
