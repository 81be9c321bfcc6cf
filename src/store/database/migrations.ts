import type { Database } from 'better-sqlite3';
import { Failure } from '../../core/failure.ts';

/**
 * The schema's history: number N is the step from version N - 1 to N, and `user_version` says how far a database has
 * come. A step that was released is never changed.
 */
export const MIGRATIONS: readonly string[] = [
  `CREATE TABLE settings (
     name TEXT PRIMARY KEY,
     sealed TEXT NOT NULL
   ) STRICT, WITHOUT ROWID;
   -- The column sealed holds what nobody may read or change (sealing.ts), in every table; it is sealed for the row's other names.
   CREATE TABLE appliances (
     id TEXT PRIMARY KEY,
     name TEXT NOT NULL UNIQUE,
     client_id TEXT NOT NULL UNIQUE,
     portal TEXT NOT NULL,
     scope TEXT,
     sealed TEXT NOT NULL
   ) STRICT, WITHOUT ROWID;
   -- A grant that was forgotten leaves its generation behind, so that no late answer can be taken for its successor.
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
   -- One b-tree and no index, so that a line costs one page. Times in ms since 1970.
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
];

/** The number of the newest schema; packages keep a newer store from an older Latchkey by it. */
export const NEWEST_SCHEMA = MIGRATIONS.length;

/** No Latchkey will come so far: a number beyond it is damage. */
const MAX_SCHEMA_VERSION = 9999;

/**
 * Brings a database, also an empty one, to the newest schema, each step whole or not at all.
 * @param steps all of them, from schema 0 on
 * @throws Failure as {@link readSchemaVersion}, and SQLite's errors
 */
export function migrate(database: Database, steps: readonly string[] = MIGRATIONS): void {
  const version = readSchemaVersion(database, steps.length);
  for (const [index, step] of steps.entries()) {
    if (index < version) continue;
    database.transaction(() => {
      database.exec(step);
      database.pragma(`user_version = ${index + 1}`);
    })();
  }
}

/**
 * The schema of a database, 0 for an empty one.
 * @param newest the newest that is known
 * @throws Failure `store_newer` where a newer Latchkey has written it, `store_unreadable` where it makes no sense
 */
export function readSchemaVersion(database: Database, newest: number): number {
  const version = Number(database.pragma('user_version', { simple: true }));
  if (version < 0 || version > MAX_SCHEMA_VERSION) {
    throw new Failure(
      'store_unreadable',
      `the store has schema ${version}, which there is not: it is damaged, so put back a copy of the state directory`,
    );
  }
  if (version > newest) {
    throw new Failure(
      'store_newer',
      `the store has schema ${version}, written by a newer Latchkey; this one knows schemas up to ${newest}: install the newer version again, or put back a copy of the state directory`,
    );
  }
  return version;
}
