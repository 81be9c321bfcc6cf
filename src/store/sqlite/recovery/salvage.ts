import type Database from 'better-sqlite3';
import * as v from 'valibot';
import { runInSlices } from '../../../system/slices.ts';
import type { StoredRows } from '../../backup/backup-store.ts';
import type { Sealing } from '../../keys/sealing.ts';
import { grantRow, grantRowIdentity, readGrant } from '../../rows/grant-row.ts';
import { type PairingRow, pairingRow, pairingRowIdentity, readPairing } from '../../rows/pairing-row.ts';
import {
  applianceRow,
  applianceRowIdentity,
  connectionRow,
  connectionRowIdentity,
  type InviteRow,
  inviteRow,
  inviteRowIdentity,
  readAppliance,
  readConnection,
  readInvite,
} from '../../rows/registry-rows.ts';
import { type HistoryRow, historyRow } from '../../rows/report-rows.ts';
import { nullIfDamaged } from '../../rows/schemas.ts';
import { readSession, sessionRow, sessionRowIdentity } from '../../rows/session-row.ts';
import { readSetting, settingRow, settingRowIdentity } from '../../rows/setting-row.ts';

/** All that can be read of a database, damaged or not. */
export interface Salvage extends StoredRows {
  readonly pairings: readonly PairingRow[];
  /** Only those that the hub has issued. */
  readonly invites: readonly InviteRow[];
  /** Read only from a damaged database: nothing needs it otherwise. */
  readonly history: readonly HistoryRow[];
  /** How many sealed values could be opened: 0 if the key is wrong. */
  readonly openedCount: number;
  /** What is wrong with the file as such; null if it is sound. */
  readonly damage: string | null;
}

/**
 * Reads whatever can be read, without changing anything. In a damaged table this is what comes before and after the
 * damage.
 * @param keys the keys that may open it; the first one is used if none opens anything
 * @param to the sealing of the result; undefined for the key that opens it
 */
export function salvage(database: Database.Database, keys: readonly [Sealing, ...Sealing[]], to?: Sealing): Salvage {
  const steps = salvageSteps(database, keys, to);
  for (;;) {
    const { done, value } = steps.next();
    if (done === true) return value;
  }
}

/** Like {@link salvage}, in slices. All rows are as they were when it was called. */
export function salvageInSlices(database: Database.Database, key: Sealing): Promise<Salvage> {
  return runInSlices(salvageSteps(database, [key]));
}

/** Reads all rows in the first step, checks the file in the second, and then opens one row in each. */
function* salvageSteps(
  database: Database.Database,
  keys: readonly [Sealing, ...Sealing[]],
  to?: Sealing,
): Generator<undefined, Salvage> {
  const unreadable = new Set<string>();
  let damage: string | null = null;
  let opened = 0;

  function table<Row>(name: string, schema: v.GenericSchema<unknown, Row>, key: string): Row[] {
    const found = readRows(database, name, schema, key);
    damage ??= found.damage;
    return found.rows;
  }

  const rows = {
    settings: table('settings', settingRow, 'name'),
    connections: table('connections', connectionRow, 'id'),
    appliances: table('appliances', applianceRow, 'id'),
    grants: table('grants', grantRow, 'connection'),
    pairings: table('pairings', pairingRow, 'number'),
    sessions: table('sessions', sessionRow, 'number'),
    invites: table('invites', inviteRow, 'hash'),
  };
  yield;
  damage = findStructuralDamage(database) ?? damage;
  yield;
  const sealedValues = [
    ...rows.settings.map((row) => [settingRowIdentity(row), row.sealed] as const),
    ...rows.connections.map((row) => [connectionRowIdentity(row), row.sealed] as const),
    ...rows.appliances.map((row) => [applianceRowIdentity(row), row.sealed] as const),
    ...rows.grants.map((row) => [grantRowIdentity(row), row.sealed] as const),
    ...rows.pairings.map((row) => [pairingRowIdentity(row), row.sealed] as const),
  ];
  const from = keys.find((key) => sealedValues.some(([identity, sealed]) => canOpen(key, identity, sealed))) ?? keys[0];
  const sealing = to ?? from;
  const isResealed = from !== sealing;

  /**
   * Checks rows, and seals them again if necessary.
   * @param name names an unreadable row in `unreadable`; the row is kept as it is. Null: an unreadable row is left out.
   */
  function* checked<Row extends { readonly sealed: string | null }>(
    found: readonly Row[],
    identity: (row: Row) => string,
    read: (row: Row, key: Sealing) => unknown,
    name: ((row: Row) => string) | null,
  ): Generator<undefined, Row[]> {
    const kept: Row[] = [];
    for (const row of found) {
      yield;
      if (row.sealed === null) {
        kept.push(row);
      } else if (nullIfDamaged(() => read(row, from)) !== null) {
        opened += 1;
        const resealed = () => sealing.seal(identity(row), from.open(identity(row), row.sealed ?? ''));
        kept.push(isResealed ? { ...row, sealed: resealed() } : row);
      } else if (name !== null) {
        unreadable.add(name(row));
        kept.push(row);
      }
    }
    return kept;
  }

  const settings = yield* checked(rows.settings, settingRowIdentity, readSetting, settingRowIdentity);
  const connections = yield* checked(
    rows.connections,
    connectionRowIdentity,
    readConnection,
    ({ id }) => `connections/${id}`,
  );
  const appliances = yield* checked(
    rows.appliances,
    applianceRowIdentity,
    readAppliance,
    ({ id }) => `appliances/${id}`,
  );
  const grants = yield* checked(rows.grants, grantRowIdentity, readGrant, ({ connection }) => `grants/${connection}`);
  const pairings = yield* checked(rows.pairings, pairingRowIdentity, readPairing, ({ id }) => `pairings/${id}`);
  const sessions = yield* checked(rows.sessions, sessionRowIdentity, readSession, null);
  const invites = yield* checked(rows.invites, inviteRowIdentity, readInvite, null);
  const isSound = damage === null && unreadable.size === 0;
  return {
    sealing,
    settings: new Map(settings.map((row) => [row.name, row])),
    connections,
    appliances,
    grants: new Map(grants.map((row) => [row.connection, row])),
    pairings,
    sessions: sessions.sort((a, b) => a.number - b.number),
    invites,
    history: isSound ? [] : salvageHistory(database),
    unreadable,
    openedCount: opened,
    damage,
  };
}

/** What can be read of the history, from its beginning on. Its loss is acceptable. */
function salvageHistory(database: Database.Database): HistoryRow[] {
  const rows: HistoryRow[] = [];
  try {
    for (const raw of database.prepare('SELECT * FROM history ORDER BY connection, number').iterate()) {
      const row = v.safeParse(historyRow, raw);
      if (row.success) rows.push(row.output);
    }
  } catch {
    return rows;
  }
  return rows;
}

function canOpen(key: Sealing, row: string, sealed: string | null): boolean {
  return sealed !== null && nullIfDamaged(() => key.open(row, sealed)) !== null;
}

function findStructuralDamage(database: Database.Database): string | null {
  try {
    const [first] = database.pragma('integrity_check(1)') as { integrity_check: string }[];
    if (first?.integrity_check !== 'ok') return first?.integrity_check ?? "it can't be checked";
    return (database.pragma('foreign_key_check') as unknown[]).length > 0
      ? 'a row belongs to no appliance or connection'
      : null;
  } catch (error) {
    return sqliteErrorCode(error);
  }
}

/**
 * Reads the valid rows of a table. In a damaged table these are the ones before and after the damage.
 * @param key the column that identifies a row
 * @returns `damage`: why rows are missing; null if none is
 */
function readRows<Row>(
  database: Database.Database,
  table: string,
  schema: v.GenericSchema<unknown, Row>,
  key: string,
): { readonly rows: Row[]; readonly damage: string | null } {
  const rows = new Map<unknown, Row>();
  let damage: string | null = null;
  for (const order of ['ASC', 'DESC']) {
    try {
      for (const raw of database.prepare(`SELECT * FROM ${table} ORDER BY ${key} ${order}`).iterate()) {
        const row = v.safeParse(schema, raw);
        if (row.success) rows.set(Reflect.get(Object(raw), key), row.output);
        else damage ??= `a row of ${table} is invalid`;
      }
      break;
    } catch (error) {
      damage ??= sqliteErrorCode(error);
    }
  }
  return { rows: [...rows.values()], damage };
}

/** SQLite's code of an error, such as `SQLITE_CORRUPT`; another error as text. */
function sqliteErrorCode(error: unknown): string {
  return error instanceof Error && 'code' in error ? String(error.code) : String(error);
}
