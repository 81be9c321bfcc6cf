import { Failure } from '../../core/failure.ts';
import { forEachInSlices } from '../../system/slices.ts';
import type { RestoredState, StoredRows } from '../backup/backup-store.ts';
import type { Sealing } from '../keys/sealing.ts';
import { type GrantRow, readGrant } from '../rows/grant-row.ts';
import { type ApplianceRow, type ConnectionRow, readAppliance, readConnection } from '../rows/registry-rows.ts';
import { nullIfDamaged } from '../rows/schemas.ts';
import { readSession, type SessionRow } from '../rows/session-row.ts';
import { readSetting, type SettingRow, settingRowIdentity } from '../rows/setting-row.ts';
import type { SiteDatabase } from './database/database.ts';
import { isTimeout } from './database/errors.ts';
import { inTransaction, type Statements } from './database/sql.ts';
import { RESTORED } from './link/news.ts';
import { writeRestore } from './restore.ts';

/** The advisory lock of a restore. */
const RESTORE_LOCK = 0x4c4b_0003;
/** How long a restore decrypts or encrypts rows between two statements at most, in ms. */
const MAX_PAUSE = 60_000;

/** All rows of a site as they are at one moment. @throws Failure `store_unreadable` */
export async function readSite(database: SiteDatabase, sealing: Sealing): Promise<StoredRows> {
  const mode = 'ISOLATION LEVEL REPEATABLE READ READ ONLY';
  return checkRows(await database.read((sql) => inTransaction(sql, readTables, mode)), sealing);
}

/** See `BackupStore.restore`. @param hubId the hub that restores */
export async function restoreSite<Plan extends { readonly state: RestoredState }>(
  database: SiteDatabase,
  sealing: Sealing,
  hubId: string,
  plan: (content: StoredRows) => Plan,
): Promise<Plan> {
  // If this hub can't learn whether it was committed, it hears of it as the others do, when the database is back.
  const planned = await database.write([RESTORED], async (sql) => {
    await lockForRestore(sql);
    const decided = plan(await checkRows(await readTables(sql), sealing));
    await writeRestore(sql, sealing, decided.state, hubId);
    return decided;
  });
  if (planned === null) throw new Failure('unexpected', 'the restore was not written');
  return planned;
}

/**
 * Excludes all other writers of what a restore reads and changes, until the end of the transaction.
 * @throws Failure `not_allowed` if another restore takes longer than the session's `lock_timeout`
 */
async function lockForRestore(sql: Statements): Promise<void> {
  try {
    await sql.run('SELECT pg_advisory_xact_lock($1, 0)', RESTORE_LOCK);
  } catch (error) {
    if (!isTimeout(error)) throw error;
    throw new Failure('not_allowed', 'another backup is being restored into the site', {
      advice: 'wait until that has ended, and look at its result first ("latchkey status")',
      cause: error,
      includesCause: true,
    });
  }
  // The hub decrypts and encrypts rows between two statements.
  await sql.run(`SET LOCAL idle_in_transaction_session_timeout = ${MAX_PAUSE}`);
  // In the order in which other transactions write them.
  await sql.run('LOCK TABLE connections, appliances, grants, sessions, settings IN SHARE ROW EXCLUSIVE MODE');
}

/** The rows of a site's tables, as they are stored. */
interface TableRows {
  readonly settings: readonly SettingRow[];
  readonly connections: readonly ConnectionRow[];
  readonly appliances: readonly ApplianceRow[];
  readonly grants: readonly GrantRow[];
  readonly sessions: readonly SessionRow[];
}

/** Reads all rows that a backup contains. Call it in a transaction that sees them as they are at one moment. */
async function readTables(sql: Statements): Promise<TableRows> {
  return {
    settings: await sql.all<SettingRow>('SELECT name, sealed FROM settings ORDER BY name'),
    connections: await sql.all<ConnectionRow>('SELECT id, name, portal, scope, sealed FROM connections ORDER BY id'),
    appliances: await sql.all<ApplianceRow>(
      'SELECT id, name, client_id, connection, sealed FROM appliances ORDER BY id',
    ),
    grants: await sql.all<GrantRow>(
      `SELECT connection, generation, sealed, attempt, doubt, refused, distrusted, misconfigured
       FROM grants ORDER BY connection`,
    ),
    sessions: await sql.all<SessionRow>('SELECT number, hash, appliance, device, sealed FROM sessions ORDER BY number'),
  };
}

/** Finds out which rows can be opened, in slices. */
async function checkRows(tables: TableRows, sealing: Sealing): Promise<StoredRows> {
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
    sessions: sessions.filter((row) => !unreadable.has(sessionOf(row))),
    unreadable,
  };
}
