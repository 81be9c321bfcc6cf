import { copyFile } from 'node:fs/promises';
import type { Host } from '../../support/netns.ts';
import type { StopMode } from '../../support/postgres/process.ts';
import { type PostgresServer, startPostgres, type TestDatabase } from '../../support/postgres/server.ts';
import { addStandby, type PostgresStandby } from '../../support/postgres/standby.ts';

/** The address of the database on the test network, whichever server has it. */
export const DATABASE_ADDRESS = '10.77.0.200';
const PORT = 5432;

/**
 * The database of a site: a primary and its synchronous standby, each on its own host. The primary's host has
 * {@link DATABASE_ADDRESS}, which moves to the standby when that is promoted.
 */
export class ReplicatedDatabase implements AsyncDisposable {
  readonly #clients: readonly Host[];
  readonly #caFile: string;
  #hosts: { readonly primary: Host; readonly standby: Host };
  #primary: PostgresServer;
  #standby: PostgresStandby;
  readonly #database: TestDatabase;

  private constructor(
    hosts: { readonly primary: Host; readonly standby: Host },
    options: { readonly clients: readonly Host[]; readonly caFile: string },
    primary: PostgresServer,
    standby: PostgresStandby,
    database: TestDatabase,
  ) {
    this.#hosts = hosts;
    this.#clients = options.clients;
    this.#caFile = options.caFile;
    this.#primary = primary;
    this.#standby = standby;
    this.#database = database;
  }

  /**
   * Starts both servers, and creates the database.
   * @param options `clients`: the hosts that connect to it; `caFile`: where the CA of the servers' certificates is
   * written
   */
  static async start(
    hosts: { readonly primary: Host; readonly standby: Host },
    options: { readonly clients: readonly Host[]; readonly caFile: string },
  ): Promise<ReplicatedDatabase> {
    await using starting = new AsyncDisposableStack();
    // Each server listens on the address before its host has it.
    for (const host of Object.values(hosts)) {
      await host.run('/bin/sh', ['-c', 'echo 1 > /proc/sys/net/ipv4/ip_nonlocal_bind']);
    }
    await addAddress(hosts.primary);
    const primary = starting.use(await startPostgres({ listenOn: asDatabase(hosts.primary), port: PORT }));
    const database = await primary.createDatabase();
    await copyFile(primary.caFile, options.caFile);
    const standby = starting.use(await addStandby(primary, { synchronous: true, listenOn: asDatabase(hosts.standby) }));
    starting.move();
    return new ReplicatedDatabase(hosts, options, primary, standby, database);
  }

  /** The `postgresql:` URL for the hubs. */
  get url(): string {
    const url = new URL(this.#database.url);
    url.searchParams.set('sslrootcert', this.#caFile);
    return url.href;
  }

  /** Runs statements in the database, as superuser. */
  sql(statements: string): Promise<string> {
    return this.#primary.sql(this.#database, statements);
  }

  /** Stops the primary and starts it again. @param mode `kill`: all its processes get SIGKILL */
  async restart(mode: StopMode | 'kill'): Promise<void> {
    if (mode === 'kill') await this.#primary.kill();
    else await this.#primary.stop(mode);
    await this.#primary.start();
  }

  /**
   * Kills the primary, promotes the standby and gives it the database's address; then creates the next synchronous
   * standby on the other host.
   * @param onPromoted called when the database can be used again
   */
  async promote(onPromoted: () => void): Promise<void> {
    const { primary: former, standby: next } = this.#hosts;
    await this.#primary.kill();
    await former.run('/usr/sbin/ip', ['addr', 'del', `${DATABASE_ADDRESS}/24`, 'dev', 'eth0']);
    await this.#standby.promote();
    await addAddress(next);
    // As a gratuitous ARP does.
    for (const client of [former, ...this.#clients]) {
      await client.run('/usr/sbin/ip', ['neigh', 'flush', 'to', DATABASE_ADDRESS]);
    }
    onPromoted();
    const replaced = this.#primary;
    this.#primary = this.#standby.server;
    this.#hosts = { primary: next, standby: former };
    await replaced[Symbol.asyncDispose]();
    this.#standby = await addStandby(this.#primary, { synchronous: true, listenOn: asDatabase(former) });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#standby[Symbol.asyncDispose]();
    await this.#primary[Symbol.asyncDispose]();
  }
}

function asDatabase({ namespace }: Host): { readonly namespace: string; readonly address: string } {
  return { namespace, address: DATABASE_ADDRESS };
}

async function addAddress(host: Host): Promise<void> {
  await host.run('/usr/sbin/ip', ['addr', 'add', `${DATABASE_ADDRESS}/24`, 'dev', 'eth0']);
}
