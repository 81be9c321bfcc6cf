import { readFileSync } from 'node:fs';
import { jweSealing, type Sealing, STORE_KEY_BYTES } from '../../../src/store/keys/sealing.ts';
import { loadStoreKey } from '../../../src/store/keys/store-key.ts';
import { type DatabaseAddress, newClient } from '../../../src/store/postgres/database/connections.ts';
import { readDatabaseAddress } from '../../../src/store/postgres/database/database-address.ts';
import { parsePostgresUrl } from '../../../src/store/postgres/database/postgres-url.ts';
import { openPostgresStore } from '../../../src/store/postgres/open-postgres-store.ts';
import { toGrantRow } from '../../../src/store/rows/grant-row.ts';
import { systemClock, systemTimers } from '../../../src/system/clock.ts';
import { systemRandom } from '../../../src/system/random.ts';
import { addMadeUpFleet, type FleetMember, madeUpGrant } from '../../../test/reliability/stored-fleet.ts';
import { type PostgresServer, startPostgres, type TestDatabase } from '../../../test/support/postgres/server.ts';
import type { PermissivePortal } from '../permissive-portal.ts';
import { cpuTime, programTime } from '../program.ts';

/** The hub that writes the connections and is gone before the others start. */
const WRITER = 'latchkey-00000000';

/** Statements of the store, see `SiteDatabase.write` and `SiteGrants`: each transaction has one of the first kind. */
const CHANGE = /^WITH change AS/;
const GRANT_WRITE = /^UPDATE grants SET (attempt|generation) = /;
const GRANT_READ = /^SELECT connection, generation, sealed[\s\S]* FROM grants/;

/** Forgets the hubs that have used the database. */
const FORGET = ['changes', 'hubs', 'hub_settings', 'history', 'usage', 'leases']
  .map((table) => `DELETE FROM latchkey.${table}`)
  .join(';');

/** What the hubs have asked the server for since {@link SiteDatabase.resetCounts}. */
export interface DatabaseCounts {
  /** Statements of transactions that write a refresh, with BEGIN and COMMIT. */
  readonly refreshStatements: number;
  /** Those of such transactions. */
  readonly commits: number;
  /** Reads of grants that another hub has changed. */
  readonly grantReads: number;
  /** Everything else: heartbeats, looks for news, leases. */
  readonly otherStatements: number;
  /** Bytes written to the write-ahead log. */
  readonly wal: number;
  /** Rows added to `changes`. */
  readonly changes: number;
}

/** A PostgreSQL server whose commits wait for the disk, and that counts its statements. */
export function startBenchServer(): Promise<PostgresServer> {
  return startPostgres({ fsync: true, settings: { shared_preload_libraries: 'pg_stat_statements' } });
}

/** CPU time of all processes of the server since its start, in ms. */
export function serverCpu({ pids }: PostgresServer): number {
  const [first = 0] = pids;
  return pids.reduce((sum, pid) => sum + cpuTime(pid), programTime(first));
}

/** Memory of the server, in MB (of 2^20 bytes): each process's share of what several of them use. */
export function serverMemory({ pids }: PostgresServer): number {
  const shares = pids.map((pid) => /^Pss:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/smaps_rollup`, 'utf8'))?.[1]);
  return shares.reduce((sum, share) => sum + Number(share) / 1024, 0);
}

/** The database of a site, with connections. */
export class SiteDatabase {
  readonly server: PostgresServer;
  readonly database: TestDatabase;
  /** Where the hubs' `store.key` is. */
  readonly directory: string;
  #site: { readonly id: string; readonly fleet: readonly FleetMember[] } | null = null;
  #wal = 0;
  #changes = 0;

  private constructor(server: PostgresServer, database: TestDatabase, directory: string) {
    this.server = server;
    this.database = database;
    this.directory = directory;
  }

  /** @param directory for the store key */
  static async create(server: PostgresServer, directory: string): Promise<SiteDatabase> {
    const created = new SiteDatabase(server, await server.createDatabase(), directory);
    await created.#sql('CREATE EXTENSION pg_stat_statements');
    return created;
  }

  /**
   * Writes connections and appliances with made-up tokens, see `addMadeUpFleet`; from the second time on only the
   * tokens.
   * @returns the client ids and secrets; the ids are those of the connections
   */
  async fill(portal: PermissivePortal, lifetime: number, dueAt: readonly number[]): Promise<readonly FleetMember[]> {
    const { name } = this.database;
    const key = await loadStoreKey(this.directory, undefined, () => systemRandom.token(STORE_KEY_BYTES));
    const address = await readDatabaseAddress(parsePostgresUrl(this.database.url));
    const sealing = jweSealing(key);
    // Nothing here needs to outlive a crash.
    await this.#sql(`ALTER DATABASE ${name} SET synchronous_commit = off`);
    if (this.#site === null) {
      const environment = { clock: systemClock(), timers: systemTimers, random: systemRandom };
      await using store = await openPostgresStore({ address, hubId: WRITER, hubName: WRITER, sealing, ...environment });
      this.#site = { id: store.siteId, fleet: await addMadeUpFleet(store, store.siteId, portal, lifetime, dueAt) };
    } else await this.#replaceTokens(address, sealing, portal, lifetime, dueAt);
    await this.#sql(`${FORGET}; ALTER DATABASE ${name} RESET synchronous_commit`);
    await this.#sql('VACUUM FULL ANALYZE; CHECKPOINT');
    return this.#site.fleet;
  }

  async #replaceTokens(
    address: DatabaseAddress,
    sealing: Sealing,
    portal: PermissivePortal,
    lifetime: number,
    dueAt: readonly number[],
  ): Promise<void> {
    const { id: site = '', fleet = [] } = this.#site ?? {};
    const rows = fleet.map(({ client_id: id }, index) =>
      toGrantRow(madeUpGrant(site, id, portal, lifetime, dueAt[index] ?? Number.NaN), sealing),
    );
    const client = newClient(address, WRITER, {});
    await client.connect();
    await client.query(
      `UPDATE grants SET generation = 1, revision = 1, sealed = given.sealed, attempt = NULL, attempt_id = NULL,
         holder = NULL, leased_until = NULL, doubt = NULL
       FROM unnest($1::text[], $2::text[]) AS given (connection, sealed) WHERE grants.connection = given.connection`,
      [rows.map(({ connection }) => connection), rows.map(({ sealed }) => sealed)],
    );
    await client.end();
  }

  async resetCounts(): Promise<void> {
    await this.#sql('SELECT pg_stat_statements_reset()');
    [this.#wal, this.#changes] = await this.#positions();
  }

  async readCounts(): Promise<DatabaseCounts> {
    const [wal, changes] = await this.#positions();
    const rows = await this.#sql(
      `SELECT json_build_object('query', query, 'calls', calls) FROM pg_stat_statements
       JOIN pg_database ON oid = dbid WHERE datname = current_database() AND userid::regrole::text <> current_user`,
    );
    const statements = rows.split('\n').map((row) => JSON.parse(row) as { query: string; calls: number });
    const count = (pattern: RegExp) =>
      statements.reduce((sum, { query, calls }) => (pattern.test(query) ? sum + calls : sum), 0);
    const [transactions, grantReads] = [count(CHANGE), count(GRANT_READ)];
    const counted = count(GRANT_WRITE) + transactions;
    return {
      // The server counts a prepared BEGIN or COMMIT only the first time.
      ...{ commits: transactions, refreshStatements: counted + 2 * transactions },
      ...{ grantReads, otherStatements: count(/^(?!BEGIN|COMMIT)/) - counted - grantReads },
      ...{ wal: wal - this.#wal, changes: changes - this.#changes },
    };
  }

  /** The position in the write-ahead log, and the number of rows of `changes`. */
  async #positions(): Promise<[wal: number, changes: number]> {
    const row = await this.#sql(`SELECT pg_current_wal_insert_lsn() - '0/0', (SELECT count(*) FROM latchkey.changes)`);
    const [wal = Number.NaN, changes = Number.NaN] = row.split('|').map(Number);
    return [wal, changes];
  }

  #sql(statements: string): Promise<string> {
    return this.server.sql(this.database, statements);
  }
}
