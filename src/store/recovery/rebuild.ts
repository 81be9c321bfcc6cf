import type Database from 'better-sqlite3';
import { isExcludedFromBackup } from '../../core/backup-state.ts';
import { emptyStore } from '../database/database.ts';
import type { ApplianceRow } from '../rows/appliance-table.ts';
import type { GrantRow } from '../rows/grant-table.ts';
import type { SessionRow } from '../rows/session-table.ts';
import type { SettingRow } from '../rows/setting-table.ts';
import type { Salvage } from './salvage.ts';

/** The daily copy, with when it was made, in ms since 1970. */
export interface Snapshot {
  readonly salvage: Salvage;
  readonly made: number;
}

/** A database made from what is left of another, and of its daily copy. */
export interface Rebuilt {
  /** In memory. */
  readonly database: Database.Database;
  /** Names of the appliances whose grant is the copy's, and may be an older one. */
  readonly fromSnapshot: readonly string[];
  /** How many rows can't be had from either. */
  readonly lost: number;
}

/** What a row may be taken from: what is left of the database, and the daily copy. */
interface Sources {
  readonly left: Salvage | null;
  readonly snapshot: Snapshot | null;
}

/**
 * Makes a new database in memory. Where only rows are damaged and the file is sound, what it does not have was removed by
 * a person, and stays so. A row that can be read in the damaged one counts; else the daily copy's; else, where it
 * is there at all, it is taken over as it is, so that nothing is thrown away. A grant of the copy is in doubt, unless it
 * is known to be the last one: its refresh token may be used up.
 */
export function rebuild({ left, snapshot }: Sources): Rebuilt {
  const database = emptyStore();
  const grants = chosenGrants({ left, snapshot });
  const appliances = chosenAppliances({ left, snapshot }, new Set(grants.map(({ row }) => row.appliance)));
  const names = new Map(appliances.map(({ id, name }) => [id, name]));
  const insert = (table: string, row: object) => {
    const columns = Object.keys(row);
    const values = columns.map(() => '?').join(', ');
    const sql = `INSERT INTO ${table} (${columns.join(', ')}) VALUES (${values})`;
    database.prepare(sql).run(...Object.values(row));
  };
  let lost = 0;
  database.transaction(() => {
    for (const row of chosenSettings({ left, snapshot })) insert('settings', row);
    for (const row of appliances) insert('appliances', row);
    for (const { row } of grants) {
      if (names.has(row.appliance)) insert('grants', row);
      else lost += 1;
    }
    const seen = new Set<string>();
    for (const row of left?.pairings ?? []) {
      if (seen.has(row.id) || !names.has(row.appliance)) continue;
      seen.add(row.id);
      insert('pairings', row);
    }
    for (const row of chosenSessions({ left, snapshot }, names)) insert('sessions', row);
    // One of the copy may have been used since.
    for (const row of left?.invites ?? []) insert('invites', row);
    const numbered = new Map((left?.history ?? []).map((row) => [`${row.appliance} ${row.number}`, row]));
    for (const row of numbered.values()) if (names.has(row.appliance)) insert('history', row);
  })();
  const fromSnapshot = grants.filter(({ older }) => older).map(({ row }) => names.get(row.appliance) ?? row.appliance);
  return { database, fromSnapshot, lost };
}

/** Whether a database that is sound has less in it than its copy: it was put back, or lost its journal. */
export function isBehind(left: Salvage, snapshot: Salvage): boolean {
  return (
    [...snapshot.settings.keys()].some((name) => !isExcludedFromBackup(name) && !left.settings.has(name)) ||
    [...snapshot.grants.values()].some((row) => isNewer(row, left.grants.get(row.appliance)))
  );
}

/** An appliance that was removed has no grant any more, which says nothing. */
function isNewer(other: GrantRow, own: GrantRow | undefined): boolean {
  return own !== undefined && other.generation > own.generation;
}

/** Whether the copy has a readable row in place of one that can't be read. */
export function canMend(left: Salvage, snapshot: Salvage): boolean {
  return [...left.unreadable].some((row) => {
    const [table, key = ''] = row.split('/');
    if (snapshot.unreadable.has(row)) return false;
    if (table === 'grants') return hasTokens(snapshot.grants.get(key));
    if (table === 'appliances') return snapshot.appliances.some(({ id }) => id === key);
    return table === 'settings' && !isExcludedFromBackup(key) && snapshot.settings.has(key);
  });
}

function chosenGrants({ left, snapshot }: Sources): { row: GrantRow; older: boolean }[] {
  const appliances = new Set([
    ...(left?.grants.keys() ?? []),
    ...(isSound(left) ? [] : (snapshot?.salvage.grants.keys() ?? [])),
  ]);
  return [...appliances].flatMap((appliance) => {
    const key = `grants/${appliance}`;
    const own = left?.grants.get(appliance);
    const other = snapshot?.salvage.unreadable.has(key) ? undefined : snapshot?.salvage.grants.get(appliance);
    const ownCounts = own !== undefined && !left?.unreadable.has(key);
    if (snapshot === null || other === undefined || (ownCounts && !isNewer(other, own))) {
      return own === undefined ? [] : [{ row: own, older: false }];
    }
    if (!hasTokens(other)) return [{ row: own ?? other, older: false }];
    const isLast = own?.generation === other.generation;
    return [{ row: isLast ? other : doubted(other, snapshot.made), older: !isLast }];
  });
}

function doubted(row: GrantRow, made: number): GrantRow {
  if (row.doubt !== null) return row;
  const lostAt = { boot: '', uptime: 0, wall: made };
  return { ...row, attempt: null, doubt: JSON.stringify({ kind: 'copy', lostAt, sends: 0 }) };
}

/**
 * Of two appliances with one name or one client_id, as damage may leave them, the one that has a grant; of two rows of one
 * appliance the one that can be read.
 */
function chosenAppliances({ left, snapshot }: Sources, granted: ReadonlySet<string>): ApplianceRow[] {
  const known = new Set(left?.appliances.map(({ id }) => id));
  const others = snapshot?.salvage.appliances.filter(({ id }) => !isSound(left) || known.has(id)) ?? [];
  const readable = [...legible(left, left?.appliances), ...legible(snapshot?.salvage, others)];
  const all = [...readable, ...(left?.appliances ?? []), ...others];
  const rows = [...all.filter(({ id }) => granted.has(id)), ...all.filter(({ id }) => !granted.has(id))];
  const chosen = new Map<string, ApplianceRow>();
  const taken = new Set<string>();
  for (const row of rows) {
    const marks = [`name ${row.name}`, `client_id ${row.client_id}`];
    if (chosen.has(row.id) || marks.some((mark) => taken.has(mark))) continue;
    chosen.set(row.id, row);
    for (const mark of marks) taken.add(mark);
  }
  return [...chosen.values()];
}

function legible(source: Salvage | null | undefined, rows: readonly ApplianceRow[] = []): ApplianceRow[] {
  return rows.filter(({ id }) => !source?.unreadable.has(`appliances/${id}`));
}

/** In their order: those that only the copy has are the older ones. With its grant, an appliance's sessions were forgotten. */
function chosenSessions({ left, snapshot }: Sources, known: ReadonlyMap<string, string>): Omit<SessionRow, 'number'>[] {
  const forgotten = ({ appliance }: SessionRow) => left?.grants.get(appliance)?.sealed === null;
  const others = isSound(left) ? [] : (snapshot?.salvage.sessions.filter((row) => !forgotten(row)) ?? []);
  const own = left?.sessions ?? [];
  const chosen: Omit<SessionRow, 'number'>[] = [];
  const taken = new Set<string>();
  for (const { number: _, ...row } of [...own.toReversed(), ...others.toReversed()]) {
    const marks = [`hash ${row.hash}`, `device ${row.device}`];
    if (!known.has(row.appliance) || marks.some((mark) => taken.has(mark))) continue;
    chosen.unshift(row);
    for (const mark of marks) taken.add(mark);
  }
  return chosen;
}

function chosenSettings({ left, snapshot }: Sources): SettingRow[] {
  const rows = new Map<string, SettingRow>();
  for (const source of [left, snapshot?.salvage]) {
    for (const [name, row] of source?.settings ?? []) {
      if (source !== left && isExcludedFromBackup(name)) continue;
      if (!rows.has(name) && !source?.unreadable.has(`settings/${name}`)) rows.set(name, row);
    }
  }
  for (const [name, row] of left?.settings ?? []) if (!rows.has(name)) rows.set(name, row);
  return [...rows.values()];
}

function isSound(left: Salvage | null): boolean {
  return left !== null && left.damage === null;
}

function hasTokens(row: GrantRow | undefined): boolean {
  return row !== undefined && row.sealed !== null;
}
