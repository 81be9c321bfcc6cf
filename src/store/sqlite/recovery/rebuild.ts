import type Database from 'better-sqlite3';
import * as v from 'valibot';
import { connectionIds } from '../../../core/appliances/appliance.ts';
import { sessionConnection } from '../../../core/appliances/session.ts';
import { isExcludedFromBackup } from '../../../core/backup-contents.ts';
import { deriveNamed } from '../../../core/name.ts';
import type { Sealing } from '../../keys/sealing.ts';
import { type GrantRow, readGrant } from '../../rows/grant-row.ts';
import {
  type ApplianceRow,
  type ConnectionRow,
  connectionRow,
  readAppliance,
  toConnectionRow,
} from '../../rows/registry-rows.ts';
import { nullIfDamaged } from '../../rows/schemas.ts';
import { readSession, type SessionRow } from '../../rows/session-row.ts';
import { type SettingRow, settingRowIdentity } from '../../rows/setting-row.ts';
import { createInMemoryDatabase } from '../database.ts';
import type { Salvage } from './salvage.ts';

/** What can be read of the snapshot, and when it was made, in ms since 1970. */
export interface SalvagedSnapshot {
  readonly salvage: Salvage;
  readonly createdAt: number;
}

/** A database made from what can be read of a damaged one and of its snapshot. */
export interface RebuiltDatabase {
  /** In memory. */
  readonly database: Database.Database;
  /** Names of the connections whose grant comes from the snapshot and may be an older one. */
  readonly connectionsFromSnapshot: readonly string[];
  /** How many grants were dropped because neither they nor their connection can be read. */
  readonly lostGrantCount: number;
  /** Names of the appliances that were dropped because nothing tells which connection they used. */
  readonly lostAppliances: readonly string[];
}

/** The sources of rows: the damaged database and the snapshot. */
interface RebuildSources {
  readonly salvaged: Salvage | null;
  readonly snapshot: SalvagedSnapshot | null;
  /** What the rows are sealed with. */
  readonly sealing: Sealing;
}

/**
 * Makes a new database in memory. Each row comes from the damaged database if it can be read there, else from the
 * snapshot. A row that can be read in neither is kept as it is, so that nothing is lost. If the file is sound and only
 * rows are damaged, rows that it does not have were removed by a person and stay removed. A grant of the snapshot is in
 * doubt unless it is known to be the last one, because its refresh token may be used up. A connection that neither
 * source has is made again from its grant.
 */
export function rebuild(sources: RebuildSources): RebuiltDatabase {
  const { salvaged } = sources;
  const database = createInMemoryDatabase();
  /** Damage may leave rows that exclude each other: the first one is inserted. */
  const insert = (table: string, rows: readonly object[]) => {
    for (const row of rows) {
      const columns = Object.keys(row);
      const sql = `INSERT OR IGNORE INTO ${table} (${columns.join(', ')}) VALUES (${columns.map(() => '?').join(', ')})`;
      database.prepare(sql).run(...Object.values(row));
    }
  };
  const namesIn = (table: string) =>
    new Map(database.prepare<[], [string, string]>(`SELECT id, name FROM ${table}`).raw().all());
  const grants = chooseGrants(sources);
  const granted = new Set(grants.map(({ row }) => row.connection));
  insert('settings', settingsByPreference(sources));
  insert(
    'connections',
    byPreference(sources, 'connections', ({ id }) => granted.has(id)),
  );
  const appliances = byPreference(sources, 'appliances', ({ connection }) => granted.has(connection));
  for (const { row } of grants) {
    insert('connections', recreateConnection(row, appliances, namesIn('connections'), sources.sealing));
  }
  const connections = namesIn('connections');
  const isKnown = ({ connection }: { readonly connection: string }) => connections.has(connection);
  insert('appliances', appliances.filter(isKnown));
  const kept = grants.filter(({ row }) => isKnown(row));
  insert(
    'grants',
    kept.map(({ row }) => row),
  );
  insert('pairings', salvaged?.pairings.filter(isKnown) ?? []);
  const inserted = database.prepare<[], ApplianceRow>('SELECT * FROM appliances').all();
  const connectionsOf = new Map(inserted.map((row) => [row.id, usedConnections(row, sources.sealing)]));
  insert('sessions', sessionsByPreference(sources, connectionsOf));
  // Not from the snapshot: its invites may have been used since.
  insert('invites', salvaged?.invites ?? []);
  insert('history', salvaged?.history.filter(isKnown) ?? []);
  const lost = appliances.filter((row) => !isKnown(row) && !connectionsOf.has(row.id));
  return {
    database,
    connectionsFromSnapshot: kept
      .filter(({ older }) => older)
      .map(({ row }) => connections.get(row.connection) ?? row.connection),
    lostGrantCount: grants.filter(({ row }) => hasTokens(row) && !isKnown(row)).length,
    lostAppliances: [...new Set(lost.map(({ name }) => name))],
  };
}

/**
 * The connection of a readable grant that neither source has, with the name of an appliance that uses it, else of its
 * portal.
 * @param names the names of the other connections, by id
 * @returns nothing if the connection is among them, or the grant is of no use
 */
function recreateConnection(
  row: GrantRow,
  appliances: readonly ApplianceRow[],
  names: ReadonlyMap<string, string>,
  sealing: Sealing,
): ConnectionRow[] {
  const { connection: id } = row;
  const grant = names.has(id) || !hasTokens(row) ? null : nullIfDamaged(() => readGrant(row, sealing).grant);
  if (grant === null) return [];
  const { issuer, requestedScope: scope } = grant;
  const user = appliances.find(({ connection }) => connection === id);
  const taken = new Set(names.values());
  const { name } = deriveNamed(user?.name ?? issuer.name, 'connection', (candidate) => taken.has(candidate));
  const recreated = toConnectionRow({ id, name, title: name, portal: issuer.name, scope, origin: 'added' }, sealing);
  return v.is(connectionRow, recreated) ? [recreated] : [];
}

/** Whether a sound database has less than its snapshot, because an old copy was restored or the WAL was lost. */
export function isOlderThanSnapshot(salvaged: Salvage, snapshot: Salvage): boolean {
  return (
    [...snapshot.settings.keys()].some((name) => !isExcludedFromBackup(name) && !salvaged.settings.has(name)) ||
    [...snapshot.grants.values()].some((row) => hasNewerGeneration(row, salvaged.grants.get(row.connection)))
  );
}

/** False if there is no own grant: the connection may have been removed since the snapshot. */
function hasNewerGeneration(other: GrantRow, own: GrantRow | undefined): boolean {
  return own !== undefined && other.generation > own.generation;
}

/** Whether the snapshot has a readable row for one that can't be read. */
export function canRepairFromSnapshot(salvaged: Salvage, snapshot: Salvage): boolean {
  return [...salvaged.unreadable].some((row) => {
    const [table, key = ''] = row.split('/');
    if (snapshot.unreadable.has(row)) return false;
    if (table === 'grants') return hasTokens(snapshot.grants.get(key));
    if (table === 'connections') return snapshot.connections.some(({ id }) => id === key);
    if (table === 'appliances') {
      const known = new Set(salvaged.connections.map(({ id }) => id));
      // A row that names a connection that was removed since is of no use.
      return snapshot.appliances.some(({ id, connection }) => id === key && known.has(connection));
    }
    return table === 'settings' && !isExcludedFromBackup(key) && snapshot.settings.has(key);
  });
}

function chooseGrants({ salvaged, snapshot }: RebuildSources): { row: GrantRow; older: boolean }[] {
  const connections = new Set([
    ...(salvaged?.grants.keys() ?? []),
    ...(isSound(salvaged) ? [] : (snapshot?.salvage.grants.keys() ?? [])),
  ]);
  return [...connections].flatMap((connection) => {
    const key = `grants/${connection}`;
    const own = salvaged?.grants.get(connection);
    const other = snapshot?.salvage.unreadable.has(key) ? undefined : snapshot?.salvage.grants.get(connection);
    const isOwnReadable = own !== undefined && !salvaged?.unreadable.has(key);
    if (snapshot === null || other === undefined || (isOwnReadable && !hasNewerGeneration(other, own))) {
      return own === undefined ? [] : [{ row: own, older: false }];
    }
    if (!hasTokens(other)) return [{ row: own ?? other, older: false }];
    const isLast = own?.generation === other.generation;
    return [{ row: isLast ? other : markInDoubt(other, snapshot.createdAt), older: !isLast }];
  });
}

function markInDoubt(row: GrantRow, made: number): GrantRow {
  if (row.doubt !== null) return row;
  const lostAt = { boot: '', uptime: 0, wall: made };
  return { ...row, attempt: null, doubt: JSON.stringify({ kind: 'copy', lostAt, sends: 0 }) };
}

/**
 * The rows of both sources. Damage may leave two with the same name or client_id: the one with a grant comes first. If
 * one id has two rows, the readable one comes first.
 */
function byPreference<Table extends 'appliances' | 'connections'>(
  { salvaged, snapshot }: RebuildSources,
  table: Table,
  hasGrant: (row: Salvage[Table][number]) => boolean,
): Salvage[Table][number][] {
  const own: readonly Salvage[Table][number][] = salvaged?.[table] ?? [];
  const known = new Set(own.map(({ id }) => id));
  const inSnapshot: readonly Salvage[Table][number][] = snapshot?.salvage[table] ?? [];
  const others = inSnapshot.filter(({ id }) => !isSound(salvaged) || known.has(id));
  const readable = (source: Salvage | null | undefined, rows: readonly Salvage[Table][number][]) =>
    rows.filter(({ id }) => !source?.unreadable.has(`${table}/${id}`));
  const all = [...readable(salvaged, own), ...readable(snapshot?.salvage, others), ...own, ...others];
  return [...all.filter(hasGrant), ...all.filter((row) => !hasGrant(row))];
}

/**
 * The newest first. If the grant of a connection was deleted, so were the sessions for it. If another session has the
 * number of one in the snapshot, the latter has ended since.
 * @param connectionsOf the ids of the connections of each appliance; sessions of others are left out
 */
function sessionsByPreference(
  { salvaged, snapshot, sealing }: RebuildSources,
  connectionsOf: ReadonlyMap<string, readonly string[]>,
): SessionRow[] {
  const isDeleted = (row: SessionRow) => {
    const used = connectionsOf.get(row.appliance) ?? [];
    const session = nullIfDamaged(() => readSession(row, sealing));
    const connection = session === null ? undefined : sessionConnection(session, used);
    return salvaged?.grants.get(connection ?? used[0] ?? '')?.sealed === null;
  };
  const others = isSound(salvaged) ? [] : (snapshot?.salvage.sessions.filter((row) => !isDeleted(row)) ?? []);
  return [...(salvaged?.sessions.toReversed() ?? []), ...others.toReversed()].filter(({ appliance }) =>
    connectionsOf.has(appliance),
  );
}

/** The ids of the connections that an appliance uses; of a damaged row, only the first is known. */
function usedConnections(row: ApplianceRow, sealing: Sealing): readonly string[] {
  return nullIfDamaged(() => connectionIds(readAppliance(row, sealing))) ?? [row.connection];
}

/** Readable rows first. */
function settingsByPreference({ salvaged, snapshot }: RebuildSources): SettingRow[] {
  const own = [...(salvaged?.settings.values() ?? [])];
  const others = [...(snapshot?.salvage.settings.values() ?? [])].filter(({ name }) => !isExcludedFromBackup(name));
  return [
    ...own.filter((row) => !salvaged?.unreadable.has(settingRowIdentity(row))),
    ...others.filter((row) => !snapshot?.salvage.unreadable.has(settingRowIdentity(row))),
    ...own,
  ];
}

function isSound(salvaged: Salvage | null): boolean {
  return salvaged !== null && salvaged.damage === null;
}

function hasTokens(row: GrantRow | undefined): boolean {
  return row !== undefined && row.sealed !== null;
}
