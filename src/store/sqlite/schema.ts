import type { Database } from 'better-sqlite3';
import { Failure } from '../../core/failure.ts';

/** The version of the schema, which a database has as its `user_version`. Packages check it before an update. */
export const SCHEMA_VERSION = 1;

/** In every table the column `sealed` is encrypted and authenticated with the row's identity (sealing.ts). */
const TABLES = `
  CREATE TABLE settings (
    name TEXT PRIMARY KEY,
    sealed TEXT NOT NULL
  ) STRICT, WITHOUT ROWID;
  CREATE TABLE connections (
    id TEXT PRIMARY KEY,
    name TEXT NOT NULL UNIQUE,
    portal TEXT NOT NULL,
    scope TEXT,
    sealed TEXT NOT NULL
  ) STRICT, WITHOUT ROWID;
  CREATE TABLE appliances (
    id TEXT PRIMARY KEY,
    name TEXT NOT NULL UNIQUE,
    client_id TEXT NOT NULL UNIQUE,
    connection TEXT NOT NULL REFERENCES connections (id),
    sealed TEXT NOT NULL
  ) STRICT, WITHOUT ROWID;
  -- A deleted grant keeps its generation, so that a late response can't become its successor.
  CREATE TABLE grants (
    connection TEXT PRIMARY KEY REFERENCES connections (id) ON DELETE CASCADE,
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
    connection TEXT NOT NULL REFERENCES connections (id) ON DELETE CASCADE,
    step TEXT NOT NULL,
    sealed TEXT NOT NULL
  ) STRICT;
  CREATE INDEX pairings_of_connection ON pairings (connection, number);
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
    connection TEXT NOT NULL REFERENCES connections (id) ON DELETE CASCADE,
    number INTEGER NOT NULL,
    kind TEXT NOT NULL,
    why TEXT,
    first INTEGER NOT NULL,
    last INTEGER NOT NULL,
    count INTEGER NOT NULL,
    PRIMARY KEY (connection, number)
  ) STRICT, WITHOUT ROWID;
  -- The numbers of tokens that were issued to an appliance, as JSON.
  CREATE TABLE usage (
    appliance TEXT PRIMARY KEY REFERENCES appliances (id) ON DELETE CASCADE,
    counts TEXT NOT NULL
  ) STRICT, WITHOUT ROWID;`;

/**
 * Creates the tables in an empty database, in one transaction, and enforces the foreign keys of every database. A
 * change of the schema after a release gets the next version; this is where a store of the version before is migrated.
 * @param path names the store in failures
 * @throws Failure `store_schema_unknown` if another version of Latchkey has written it; SQLite's errors
 */
export function prepareSchema(database: Database, path: string): void {
  const version = Number(database.pragma('user_version', { simple: true }));
  if (version === 0) {
    database.transaction(() => {
      database.exec(TABLES);
      database.pragma(`user_version = ${SCHEMA_VERSION}`);
    })();
  } else if (version !== SCHEMA_VERSION) {
    throw new Failure(
      'store_schema_unknown',
      `the store ${path} has schema ${version}, and this Latchkey knows only schema ${SCHEMA_VERSION}: install the version that wrote it, or restore a copy of the state directory; nothing was changed`,
    );
  }
  database.pragma('foreign_keys = ON');
}
