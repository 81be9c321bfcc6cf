import type Database from 'better-sqlite3';
import { isExcludedFromBackup } from '../../core/backup-state.ts';
import { createInMemoryDatabase } from '../database/database.ts';
import type { ApplianceRow } from '../rows/appliance-table.ts';
import type { GrantRow } from '../rows/grant-table.ts';
import type { SessionRow } from '../rows/session-table.ts';
import { type SettingRow, settingRowIdentity } from '../rows/setting-table.ts';
import type { Salvage } from './salvage.ts';

/** The daily copy, with when it was made, in ms since 1970. */
export interface SalvagedSnapshot {
  readonly salvage: Salvage;
  readonly createdAt: number;
}

/** A database made from what is left of another, and of its daily copy. */
export interface RebuiltDatabase {
  /** In memory. */
  readonly database: Database.Database;
  /** Names of the appliances whose grant is the copy's, and may be an older one. */
  readonly appliancesFromSnapshot: readonly string[];
  /** How many rows can't be had from either. */
  readonly lostGrantCount: number;
}

/** What a row may be taken from: what is left of the database, and the daily copy. */
interface RebuildSources {
  readonly salvaged: Salvage | null;
  readonly snapshot: SalvagedSnapshot | null;
}

/**
 * Makes a new database in memory. Where only rows are damaged and the file is sound, what it does not have was removed by
 * a person, and stays so. A row that can be read in the damaged one counts; else the daily copy's; else, where it
 * is there at all, it is taken over as it is, so that nothing is thrown away. A grant of the copy is in doubt, unless it
 * is known to be the last one: its refresh token may be used up.
 */
export function rebuild({ salvaged: left, snapshot }: RebuildSources): RebuiltDatabase {
  const database = createInMemoryDatabase();
  /** Of rows that exclude each other, as damage may leave them, the first one stays. */
  const insert = (table: string, rows: readonly object[]) => {
    for (const row of rows) {
      const columns = Object.keys(row);
      const sql = `INSERT OR IGNORE INTO ${table} (${columns.join(', ')}) VALUES (${columns.map(() => '?').join(', ')})`;
      database.prepare(sql).run(...Object.values(row));
    }
  };
  const grants = chooseGrants({ salvaged: left, snapshot });
  insert('settings', settingsByPreference({ salvaged: left, snapshot }));
  insert(
    'appliances',
    appliancesByPreference({ salvaged: left, snapshot }, new Set(grants.map(({ row }) => row.appliance))),
  );
  const names = new Map(database.prepare<[], [string, string]>('SELECT id, name FROM appliances').raw().all());
  const isKnown = ({ appliance }: { readonly appliance: string }) => names.has(appliance);
  const kept = grants.filter(({ row }) => isKnown(row));
  insert(
    'grants',
    kept.map(({ row }) => row),
  );
  insert('pairings', left?.pairings.filter(isKnown) ?? []);
  insert('sessions', sessionsByPreference({ salvaged: left, snapshot }).filter(isKnown));
  // One of the copy may have been used since.
  insert('invites', left?.invites ?? []);
  insert('history', left?.history.filter(isKnown) ?? []);
  const fromSnapshot = kept.filter(({ older }) => older).map(({ row }) => names.get(row.appliance) ?? row.appliance);
  return { database, appliancesFromSnapshot: fromSnapshot, lostGrantCount: grants.length - kept.length };
}

/** Whether a database that is sound has less in it than its copy: it was put back, or lost its journal. */
export function isOlderThanSnapshot(left: Salvage, snapshot: Salvage): boolean {
  return (
    [...snapshot.settings.keys()].some((name) => !isExcludedFromBackup(name) && !left.settings.has(name)) ||
    [...snapshot.grants.values()].some((row) => hasNewerGeneration(row, left.grants.get(row.appliance)))
  );
}

/** An appliance that was removed has no grant any more, which says nothing. */
function hasNewerGeneration(other: GrantRow, own: GrantRow | undefined): boolean {
  return own !== undefined && other.generation > own.generation;
}

/** Whether the copy has a readable row in place of one that can't be read. */
export function canRepairFromSnapshot(left: Salvage, snapshot: Salvage): boolean {
  return [...left.unreadable].some((row) => {
    const [table, key = ''] = row.split('/');
    if (snapshot.unreadable.has(row)) return false;
    if (table === 'grants') return hasTokens(snapshot.grants.get(key));
    if (table === 'appliances') return snapshot.appliances.some(({ id }) => id === key);
    return table === 'settings' && !isExcludedFromBackup(key) && snapshot.settings.has(key);
  });
}

function chooseGrants({ salvaged: left, snapshot }: RebuildSources): { row: GrantRow; older: boolean }[] {
  const appliances = new Set([
    ...(left?.grants.keys() ?? []),
    ...(isSound(left) ? [] : (snapshot?.salvage.grants.keys() ?? [])),
  ]);
  return [...appliances].flatMap((appliance) => {
    const key = `grants/${appliance}`;
    const own = left?.grants.get(appliance);
    const other = snapshot?.salvage.unreadable.has(key) ? undefined : snapshot?.salvage.grants.get(appliance);
    const ownCounts = own !== undefined && !left?.unreadable.has(key);
    if (snapshot === null || other === undefined || (ownCounts && !hasNewerGeneration(other, own))) {
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
 * Of two appliances with one name or one client_id, as damage may leave them, the one that has a grant comes first; of two
 * rows of one appliance the one that can be read.
 */
function appliancesByPreference(
  { salvaged: left, snapshot }: RebuildSources,
  granted: ReadonlySet<string>,
): ApplianceRow[] {
  const known = new Set(left?.appliances.map(({ id }) => id));
  const others = snapshot?.salvage.appliances.filter(({ id }) => !isSound(left) || known.has(id)) ?? [];
  const readable = [...readableAppliances(left, left?.appliances), ...readableAppliances(snapshot?.salvage, others)];
  const all = [...readable, ...(left?.appliances ?? []), ...others];
  return [...all.filter(({ id }) => granted.has(id)), ...all.filter(({ id }) => !granted.has(id))];
}

function readableAppliances(source: Salvage | null | undefined, rows: readonly ApplianceRow[] = []): ApplianceRow[] {
  return rows.filter(({ id }) => !source?.unreadable.has(`appliances/${id}`));
}

/**
 * The newest first. With its grant, an appliance's sessions were forgotten. Where another one has a session's number, that was
 * ended since the copy.
 */
function sessionsByPreference({ salvaged: left, snapshot }: RebuildSources): SessionRow[] {
  const forgotten = ({ appliance }: SessionRow) => left?.grants.get(appliance)?.sealed === null;
  const others = isSound(left) ? [] : (snapshot?.salvage.sessions.filter((row) => !forgotten(row)) ?? []);
  return [...(left?.sessions.toReversed() ?? []), ...others.toReversed()];
}

/** What can be read first. */
function settingsByPreference({ salvaged: left, snapshot }: RebuildSources): SettingRow[] {
  const own = [...(left?.settings.values() ?? [])];
  const others = [...(snapshot?.salvage.settings.values() ?? [])].filter(({ name }) => !isExcludedFromBackup(name));
  return [
    ...own.filter((row) => !left?.unreadable.has(settingRowIdentity(row))),
    ...others.filter((row) => !snapshot?.salvage.unreadable.has(settingRowIdentity(row))),
    ...own,
  ];
}

function isSound(left: Salvage | null): boolean {
  return left !== null && left.damage === null;
}

function hasTokens(row: GrantRow | undefined): boolean {
  return row !== undefined && row.sealed !== null;
}
