import type { Database } from 'better-sqlite3';
import * as v from 'valibot';
import type { Sealing } from '../keys/sealing.ts';
import { nullIfDamaged, parseJson } from '../rows/schemas.ts';
import { readRows } from './readable-rows.ts';

const applianceRow = v.object({
  id: v.string(),
  name: v.string(),
  client_id: v.string(),
  portal: v.string(),
  scope: v.nullable(v.string()),
  sealed: v.string(),
});

const sessionRow = v.object({
  number: v.number(),
  hash: v.string(),
  appliance: v.string(),
  device: v.string(),
  sealed: v.string(),
});

/**
 * Migrates schema 1 to 2: each appliance gets a connection with its id, name, portal and scope, to which its grant,
 * pairings and history belong from then on. These three are not read, so that damage to them does not prevent the
 * migration.
 *
 * A damaged table of the others is kept beside its successor, because SQLite can't drop it; the integrity check then
 * finds the damage, and the store is rebuilt.
 * @param keys the keys that may open the rows of appliances; each row is sealed again with the key that opens it
 */
export function addConnections(database: Database, keys: readonly Sealing[]): () => void {
  const found = {
    appliances: readRows(database, 'appliances', applianceRow, 'id').rows,
    areAppliancesSound: isTableSound(database, 'appliances'),
    sessions: readRows(database, 'sessions', sessionRow, 'number').rows,
    areSessionsSound: isTableSound(database, 'sessions'),
  };
  return () => writeTables(database, keys, found);
}

/** What is in the tables that are replaced. */
interface FoundRows {
  readonly appliances: readonly v.InferOutput<typeof applianceRow>[];
  readonly areAppliancesSound: boolean;
  readonly sessions: readonly v.InferOutput<typeof sessionRow>[];
  readonly areSessionsSound: boolean;
}

function writeTables(
  database: Database,
  keys: readonly Sealing[],
  { appliances, areAppliancesSound, sessions, areSessionsSound }: FoundRows,
): void {
  // The references of the other tables follow this name.
  database.exec('ALTER TABLE appliances RENAME TO connections');
  removeTable(database, 'connections', areAppliancesSound);
  removeTable(database, 'sessions', areSessionsSound);
  database.exec(TABLES);
  for (const table of ['grants', 'pairings', 'history']) {
    database.exec(`ALTER TABLE ${table} RENAME COLUMN appliance TO connection`);
  }
  // Damage may have left rows that exclude each other.
  const addConnection = database.prepare('INSERT OR IGNORE INTO connections VALUES (?, ?, ?, ?, ?)');
  const addAppliance = database.prepare('INSERT OR IGNORE INTO appliances VALUES (?, ?, ?, ?, ?)');
  const addSession = database.prepare('INSERT OR IGNORE INTO sessions VALUES (?, ?, ?, ?, ?)');
  for (const row of appliances) {
    const { id, name, client_id, portal, scope } = row;
    const sealed = sealAgain(row, keys);
    addConnection.run(id, name, portal, scope, sealed.connection);
    addAppliance.run(id, name, client_id, id, sealed.appliance);
  }
  for (const { number, hash, appliance, device, sealed } of sessions) {
    addSession.run(number, hash, appliance, device, sealed);
  }
}

/** The sealed columns of the two rows. A row that no key opens stays unreadable. */
function sealAgain(
  { id, name, client_id, portal, scope, sealed }: v.InferOutput<typeof applianceRow>,
  keys: readonly Sealing[],
): { readonly connection: string; readonly appliance: string } {
  const identity = JSON.stringify(['appliances', id, name, client_id, portal, scope]);
  for (const key of keys) {
    const text = nullIfDamaged(() => key.open(identity, sealed));
    const attributes = text && nullIfDamaged(() => parseJson(v.object({ origin: v.string() }), identity, text));
    if (text === null || !attributes) continue;
    const origin = attributes.origin === 'declared' ? 'declared' : 'implicit';
    return {
      connection: key.seal(JSON.stringify(['connections', id, name, portal, scope]), JSON.stringify({ origin })),
      appliance: key.seal(JSON.stringify(['appliances', id, name, client_id, id]), text),
    };
  }
  return { connection: '', appliance: sealed };
}

function isTableSound(database: Database, table: string): boolean {
  return database.pragma(`integrity_check(${table})`, { simple: true }) === 'ok';
}

/** Dropping a damaged table would fail, and so would every later statement of the transaction. */
function removeTable(database: Database, table: string, isSound: boolean): void {
  database.exec(isSound ? `DROP TABLE ${table}` : `ALTER TABLE ${table} RENAME TO damaged_${table}`);
}

const TABLES = `CREATE TABLE connections (
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
   CREATE TABLE sessions (
     number INTEGER PRIMARY KEY,
     hash TEXT NOT NULL UNIQUE,
     appliance TEXT NOT NULL REFERENCES appliances (id) ON DELETE CASCADE,
     device TEXT NOT NULL UNIQUE,
     sealed TEXT NOT NULL
   ) STRICT;
   -- The index of a damaged table keeps its name.
   CREATE INDEX IF NOT EXISTS sessions_of_appliance ON sessions (appliance, number);
   -- The numbers of tokens that were issued to an appliance, as JSON.
   CREATE TABLE usage (
     appliance TEXT PRIMARY KEY REFERENCES appliances (id) ON DELETE CASCADE,
     counts TEXT NOT NULL
   ) STRICT, WITHOUT ROWID;`;
