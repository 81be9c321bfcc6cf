import { forEachInSlices } from '../../../system/slices.ts';
import type { StoredRows } from '../../backup/backup-store.ts';
import type { Sealing } from '../../keys/sealing.ts';
import { type ApplianceRow, readAppliance } from '../../rows/appliance-row.ts';
import { type ConnectionRow, readConnection } from '../../rows/connection-row.ts';
import { type GrantRow, readGrant } from '../../rows/grant-row.ts';
import { nullIfDamaged } from '../../rows/schemas.ts';
import { readSession, type SessionRow } from '../../rows/session-row.ts';
import { readSetting, type SettingRow, settingRowIdentity } from '../../rows/setting-row.ts';
import type { Statements } from '../database/sql.ts';

/** How many rows are read in one statement: each must end before its timeout, also on a slow network. */
const PAGE_ROWS = 500;

const GRANT_COLUMNS = 'connection, generation, sealed, attempt, doubt, refused, distrusted, misconfigured';

/** The rows of a site's tables, as they are stored. */
interface TableRows {
  readonly settings: readonly SettingRow[];
  readonly connections: readonly ConnectionRow[];
  readonly appliances: readonly ApplianceRow[];
  readonly grants: readonly GrantRow[];
  readonly sessions: readonly SessionRow[];
}

/** Reads all rows that a backup contains. Call it in a transaction that sees them as they are at one moment. */
export async function readTables(sql: Statements): Promise<TableRows> {
  return {
    settings: await readTable<SettingRow>(sql, 'settings', 'name', 'name, sealed'),
    connections: await readTable<ConnectionRow>(sql, 'connections', 'id', 'id, name, portal, scope, sealed'),
    appliances: await readTable<ApplianceRow>(sql, 'appliances', 'id', 'id, name, client_id, connection, sealed'),
    grants: await readTable<GrantRow>(sql, 'grants', 'connection', GRANT_COLUMNS),
    sessions: await readTable<SessionRow>(sql, 'sessions', 'hash', 'number, hash, appliance, device, sealed'),
  };
}

/** Finds out which rows can be opened, in slices. */
export async function checkRows(tables: TableRows, sealing: Sealing): Promise<StoredRows> {
  const unreadable = new Set<string>();
  const check = <Row extends { readonly sealed: string | null }>(
    rows: readonly Row[],
    read: (row: Row, sealing: Sealing) => unknown,
    nameOf: (row: Row) => string,
  ) =>
    forEachInSlices(rows, (row) => {
      if (row.sealed !== null && nullIfDamaged(() => read(row, sealing)) === null) unreadable.add(nameOf(row));
    });
  const { settings, connections, appliances, grants, sessions } = tables;
  const sessionOf = ({ hash }: SessionRow) => `sessions/${hash}`;
  await check(settings, readSetting, settingRowIdentity);
  await check(connections, readConnection, ({ id }) => `connections/${id}`);
  await check(appliances, readAppliance, ({ id }) => `appliances/${id}`);
  await check(grants, readGrant, ({ connection }) => `grants/${connection}`);
  await check(sessions, readSession, sessionOf);
  return {
    sealing,
    settings: new Map(settings.map((row) => [row.name, row])),
    connections,
    appliances,
    grants: new Map(grants.map((row) => [row.connection, row])),
    sessions: sessions.filter((row) => !unreadable.has(sessionOf(row))).sort((a, b) => a.number - b.number),
    unreadable,
  };
}

/** @param key a column of texts that identifies a row, and is among `columns` */
async function readTable<Row>(
  sql: Statements,
  table: string,
  key: keyof Row & string,
  columns: string,
): Promise<Row[]> {
  const rows: Row[] = [];
  for (;;) {
    const page = await sql.all<Row>(
      `SELECT ${columns} FROM ${table} WHERE ${key} > $1 ORDER BY ${key} LIMIT ${PAGE_ROWS}`,
      rows.at(-1)?.[key] ?? '',
    );
    rows.push(...page);
    if (page.length < PAGE_ROWS) return rows;
  }
}
