import { join } from 'node:path';
import Database from 'better-sqlite3';
import { Client } from 'pg';
import { describe } from 'vitest';
import type { BrokerStore } from '../../../src/broker/ports.ts';
import { openSiteStore, siteAddress, useSiteServer } from '../../site/site-harness.ts';
import { postgresSkipReason } from '../../support/postgres/cluster.ts';
import type { TestDatabase } from '../../support/postgres/server.ts';
import { setUpOnce } from '../../support/set-up.ts';
import { memoryStateFolder } from '../../support/state-folder.ts';
import { runSql } from '../corrupt-store.ts';
import { openAsHub, readFilesAsText } from '../test-store.ts';

/** A store as the hub uses it, whatever keeps its rows. */
export type ContractStore = BrokerStore & (Disposable | AsyncDisposable);

/** Where a test keeps a store: empty at first. */
export interface StorePlace extends AsyncDisposable {
  /** Opens the store as after a start of the hub; the one that was open before must be closed. */
  open(): Promise<ContractStore>;
  /** Changes the rows behind the store's back, with SQL that both databases understand. */
  runSql(sql: string): Promise<void>;
  countRows(table: string): Promise<number>;
  /** All that is stored, as an attacker without the store's key sees it. */
  readText(): Promise<string>;
}

type NewPlace = () => Promise<StorePlace>;
export type StoreKind = 'SQLite' | 'PostgreSQL';

/**
 * Defines tests of the store's port. Each of them runs with a store on SQLite and with one on PostgreSQL.
 * @param define calls `test`; the places that it makes are used one after the other. It is told which store they are of
 */
export function describeStores(subject: string, define: (newPlace: NewPlace, kind: StoreKind) => void): void {
  describe(`${subject} on SQLite`, () => define(sqlitePlace, 'SQLite'));
  describe(`${subject} on PostgreSQL`, () => {
    const siteServer = useSiteServer();
    let database: TestDatabase | null = null;
    const make = async () => {
      database = await (await siteServer()).createDatabase();
    };
    setUpOnce(make, { skipReason: postgresSkipReason });
    define(() => postgresPlace(database), 'PostgreSQL');
  });
}

async function sqlitePlace(): Promise<StorePlace> {
  const folder = memoryStateFolder();
  return {
    open: () => openAsHub(folder.path),
    runSql: async (sql) => runSql(folder.path, sql),
    countRows: async (table) => {
      const database = new Database(join(folder.path, 'latchkey.db'), { readonly: true });
      const count = Number(database.prepare(`SELECT count(*) FROM ${table}`).pluck().get());
      database.close();
      return count;
    },
    readText: async () => readFilesAsText(folder.path),
    [Symbol.asyncDispose]: async () => folder[Symbol.dispose](),
  };
}

/** Empties the tables of one database, which takes a tenth of the time that another database does. */
async function postgresPlace(database: TestDatabase | null): Promise<StorePlace> {
  if (database === null) throw new Error('the database was not created');
  const client = new Client({ connectionString: database.url, options: '-c search_path=latchkey' });
  await client.connect();
  const query = async (sql: string) => (await client.query<Record<string, unknown>>(sql)).rows;
  const list = "SELECT tablename FROM pg_tables WHERE schemaname = 'latchkey' AND tablename <> 'schema'";
  const tables = async () => (await query(list)).map(({ tablename }) => String(tablename));
  const filled = await tables();
  if (filled.length > 0) await query(`TRUNCATE ${filled.join(', ')}`);
  return {
    open: () => openSiteStore(siteAddress(database), 'latchkey-00000001'),
    runSql: async (sql) => void (await query(sql)),
    countRows: async (table) => Number((await query(`SELECT count(*) FROM ${table}`))[0]?.['count']),
    readText: async () => {
      const rows: unknown[] = [];
      for (const table of await tables()) rows.push(await query(`SELECT * FROM ${table}`));
      return JSON.stringify(rows);
    },
    [Symbol.asyncDispose]: () => client.end(),
  };
}
