import type Database from 'better-sqlite3';
import { isExcludedFromBackup } from '../../core/backup-contents.ts';
import { createInMemoryDatabase } from '../database/database.ts';
import type { ApplianceRow } from '../rows/appliance-table.ts';
import type { GrantRow } from '../rows/grant-table.ts';
import type { SessionRow } from '../rows/session-table.ts';
import { type SettingRow, settingRowIdentity } from '../rows/setting-table.ts';
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
  /** Names of the appliances whose grant comes from the snapshot and may be an older one. */
  readonly appliancesFromSnapshot: readonly string[];
  /** How many grants were dropped because neither source has their appliance. */
  readonly lostGrantCount: number;
}

/** The sources of rows: the damaged database and the snapshot. */
interface RebuildSources {
  readonly salvaged: Salvage | null;
  readonly snapshot: SalvagedSnapshot | null;
}

/**
 * Makes a new database in memory. Each row comes from the damaged database if it can be read there, else from the
 * snapshot. A row that can be read in neither is kept as it is, so that nothing is lost. If the file is sound and only
 * rows are damaged, rows that it does not have were removed by a person and stay removed. A grant of the snapshot is in
 * doubt unless it is known to be the last one, because its refresh token may be used up.
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
  const grants = chooseGrants(sources);
  insert('settings', settingsByPreference(sources));
  insert('appliances', appliancesByPreference(sources, new Set(grants.map(({ row }) => row.appliance))));
  const names = new Map(database.prepare<[], [string, string]>('SELECT id, name FROM appliances').raw().all());
  const isKnown = ({ appliance }: { readonly appliance: string }) => names.has(appliance);
  const kept = grants.filter(({ row }) => isKnown(row));
  insert(
    'grants',
    kept.map(({ row }) => row),
  );
  insert('pairings', salvaged?.pairings.filter(isKnown) ?? []);
  insert('sessions', sessionsByPreference(sources).filter(isKnown));
  // Not from the snapshot: its invites may have been used since.
  insert('invites', salvaged?.invites ?? []);
  insert('history', salvaged?.history.filter(isKnown) ?? []);
  const fromSnapshot = kept.filter(({ older }) => older).map(({ row }) => names.get(row.appliance) ?? row.appliance);
  return { database, appliancesFromSnapshot: fromSnapshot, lostGrantCount: grants.length - kept.length };
}

/** Whether a sound database has less than its snapshot, because an old copy was restored or the WAL was lost. */
export function isOlderThanSnapshot(salvaged: Salvage, snapshot: Salvage): boolean {
  return (
    [...snapshot.settings.keys()].some((name) => !isExcludedFromBackup(name) && !salvaged.settings.has(name)) ||
    [...snapshot.grants.values()].some((row) => hasNewerGeneration(row, salvaged.grants.get(row.appliance)))
  );
}

/** False if there is no own grant: the appliance may have been removed since the snapshot. */
function hasNewerGeneration(other: GrantRow, own: GrantRow | undefined): boolean {
  return own !== undefined && other.generation > own.generation;
}

/** Whether the snapshot has a readable row for one that can't be read. */
export function canRepairFromSnapshot(salvaged: Salvage, snapshot: Salvage): boolean {
  return [...salvaged.unreadable].some((row) => {
    const [table, key = ''] = row.split('/');
    if (snapshot.unreadable.has(row)) return false;
    if (table === 'grants') return hasTokens(snapshot.grants.get(key));
    if (table === 'appliances') return snapshot.appliances.some(({ id }) => id === key);
    return table === 'settings' && !isExcludedFromBackup(key) && snapshot.settings.has(key);
  });
}

function chooseGrants({ salvaged, snapshot }: RebuildSources): { row: GrantRow; older: boolean }[] {
  const appliances = new Set([
    ...(salvaged?.grants.keys() ?? []),
    ...(isSound(salvaged) ? [] : (snapshot?.salvage.grants.keys() ?? [])),
  ]);
  return [...appliances].flatMap((appliance) => {
    const key = `grants/${appliance}`;
    const own = salvaged?.grants.get(appliance);
    const other = snapshot?.salvage.unreadable.has(key) ? undefined : snapshot?.salvage.grants.get(appliance);
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
 * Damage may leave two appliances with the same name or client_id: the one with a grant comes first. If one appliance
 * has two rows, the readable one comes first.
 */
function appliancesByPreference({ salvaged, snapshot }: RebuildSources, granted: ReadonlySet<string>): ApplianceRow[] {
  const known = new Set(salvaged?.appliances.map(({ id }) => id));
  const others = snapshot?.salvage.appliances.filter(({ id }) => !isSound(salvaged) || known.has(id)) ?? [];
  const readable = [
    ...readableAppliances(salvaged, salvaged?.appliances),
    ...readableAppliances(snapshot?.salvage, others),
  ];
  const all = [...readable, ...(salvaged?.appliances ?? []), ...others];
  return [...all.filter(({ id }) => granted.has(id)), ...all.filter(({ id }) => !granted.has(id))];
}

function readableAppliances(source: Salvage | null | undefined, rows: readonly ApplianceRow[] = []): ApplianceRow[] {
  return rows.filter(({ id }) => !source?.unreadable.has(`appliances/${id}`));
}

/**
 * The newest first. If the grant of an appliance was deleted, so were its sessions. If another session has the number
 * of one in the snapshot, the latter has ended since.
 */
function sessionsByPreference({ salvaged, snapshot }: RebuildSources): SessionRow[] {
  const isDeleted = ({ appliance }: SessionRow) => salvaged?.grants.get(appliance)?.sealed === null;
  const others = isSound(salvaged) ? [] : (snapshot?.salvage.sessions.filter((row) => !isDeleted(row)) ?? []);
  return [...(salvaged?.sessions.toReversed() ?? []), ...others.toReversed()];
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
