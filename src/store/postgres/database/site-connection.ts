import type { Client } from 'pg';
import type { Clock, Timers } from '../../../core/clock.ts';
import { Failure } from '../../../core/failure.ts';
import { type DatabaseAddress, DatabaseSockets, newClient, SCHEMA } from './connections.ts';
import { CHANNEL } from './database.ts';
import { POOLER_ADVICE } from './errors.ts';
import { type Statements, sqlOf } from './sql.ts';

/** How long a hub waits until another connection with its id is gone, in ms: a server notices a cut one after 25 s. */
const HUB_ID_WAIT = 60_000;
/** How long a hub waits at once while another one starts, in ms. */
const STARTUP_WAIT = 10_000;
/** How often it tries meanwhile, in ms. */
const LOCK_PAUSE = 200;
/** The oldest server that can do what is used here: `xid8` and its functions. */
export const MIN_SERVER_VERSION = 130_000;
/** The spaces of advisory locks: of hub ids, and of a site that starts. */
const HUB_ID_LOCK = 0x4c4b_0001;
const STARTUP_LOCK = 0x4c4b_0002;

/** What a {@link SiteConnection} needs. */
export interface SiteConnectionOptions {
  readonly address: DatabaseAddress;
  readonly hubId: string;
  readonly clock: Clock;
  readonly timers: Timers;
}

/** What a connection tells. */
interface SiteConnectionEvents {
  /** Another hub has changed something. */
  onNotification(): void;
  onLost(error: Error): void;
}

/**
 * The connection of a hub that lasts: it gets the notifications, and holds the locks that tell other processes that
 * this hub runs.
 */
export class SiteConnection implements AsyncDisposable {
  readonly sql: Statements;
  readonly #client: Client;
  readonly #sockets: DatabaseSockets;
  readonly #timers: Timers;
  #isClosed = false;

  private constructor(client: Client, sockets: DatabaseSockets, timers: Timers) {
    this.#client = client;
    this.#sockets = sockets;
    this.#timers = timers;
    this.sql = sqlOf(client);
  }

  /**
   * Connects, and takes the lock on the hub's id.
   * @param formerProcess the process of the server that served the hub's former connection: it may not have noticed the
   * end of that
   * @throws Failure as {@link assertUsable}, `store_locked` if another hub has the same id; the errors
   * of `pg`
   */
  static async open(
    { address, hubId, clock, timers }: SiteConnectionOptions,
    events: SiteConnectionEvents,
    formerProcess: number | null = null,
  ): Promise<SiteConnection> {
    const sockets = new DatabaseSockets();
    const client = newClient(address, hubId, { sockets });
    const connection = new SiteConnection(client, sockets, timers);
    client.on('error', (error) => connection.#lose(error, events));
    client.on('end', () => connection.#lose(new Error('the connection was closed'), events));
    client.on('notification', ({ payload }) => {
      if (payload !== hubId) events.onNotification();
    });
    try {
      await client.connect();
      await connection.#checkServer();
      await connection.#terminate(formerProcess, hubId);
      await connection.#lockHubId(hubId, clock, timers);
      await client.query(`LISTEN ${CHANNEL}`);
      return connection;
    } catch (error) {
      await connection[Symbol.asyncDispose]();
      throw error;
    }
  }

  /** The process of the server that serves the connection. */
  get process(): number {
    return (this.#client as { processID?: number }).processID ?? 0;
  }

  async #terminate(process: number | null, hubId: string): Promise<void> {
    await this.sql.run(
      'SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid = $1 AND application_name = $2',
      ...[process, hubId],
    );
  }

  /**
   * Waits until no other hub of the site starts. Others wait from then on until {@link unlockStartup}, or its end.
   * @throws Failure `database_unavailable` if that takes long: another hub may hang
   */
  async lockStartup(clock: Clock, timers: Timers): Promise<void> {
    const isLocked = await this.#lock(STARTUP_LOCK, '', STARTUP_WAIT, clock, timers);
    if (!isLocked) throw new Failure('database_unavailable', await this.#startingHub());
  }

  /** Says that another hub starts, and which one. */
  async #startingHub(): Promise<string> {
    const [holder] = await this.sql.all<{ hub: string }>(
      `SELECT application_name AS hub FROM pg_locks JOIN pg_stat_activity USING (pid)
       WHERE locktype = 'advisory' AND granted AND classid = $1
         AND pg_locks.database = (SELECT oid FROM pg_database WHERE datname = current_database())`,
      STARTUP_LOCK,
    );
    const hub = holder?.hub ?? '';
    return `another hub of the site is starting${hub === '' ? '' : ` (${hub})`}; if it hangs, restart it`;
  }

  async unlockStartup(): Promise<void> {
    await this.sql.run("SELECT pg_advisory_unlock($1, hashtext(''))", STARTUP_LOCK);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#isClosed = true;
    // The result is that the sockets are closed.
    this.#client.end().catch(() => undefined);
    await this.#sockets.close(this.#timers);
  }

  /** A connection reports its end twice. */
  #lose(error: Error, events: SiteConnectionEvents): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    events.onLost(error);
  }

  async #checkServer(): Promise<void> {
    const [server] = await this.sql.all<ServerFacts>(
      `SELECT current_setting('server_version') AS version, current_setting('server_version_num')::int AS number,
         pg_is_in_recovery() AS standby, current_setting('search_path') AS search_path`,
    );
    if (server !== undefined) assertUsable(server);
  }

  async #lockHubId(hubId: string, clock: Clock, timers: Timers): Promise<void> {
    if (await this.#lock(HUB_ID_LOCK, hubId, HUB_ID_WAIT, clock, timers)) return;
    throw new Failure(
      'store_locked',
      `another hub uses the site's database with the id of this hub, ${hubId}: if this hub was copied from it, delete the file hub-id in the state directory of this hub and start it again; otherwise stop the other hub`,
    );
  }

  /** @param wait how long others may hold it, in ms. @returns false if that was longer */
  async #lock(space: number, name: string, wait: number, clock: Clock, timers: Timers): Promise<boolean> {
    const until = clock.now().uptime + wait;
    for (;;) {
      const [row] = await this.sql.all<{ locked: boolean }>(
        'SELECT pg_try_advisory_lock($1, hashtext($2)) AS locked',
        ...[space, name],
      );
      if (row?.locked === true) return true;
      if (clock.now().uptime >= until) return false;
      await timers.sleep(LOCK_PAUSE);
    }
  }
}

/** What a connection says about its server. */
interface ServerFacts {
  readonly version: string;
  /** `server_version_num`. */
  readonly number: number;
  readonly standby: boolean;
  readonly search_path: string;
}

/**
 * @throws Failure `database_unusable` if the server can't be used, `database_unavailable` if it is a standby, which may
 * be promoted
 */
export function assertUsable({ version, number, standby, search_path: searchPath }: ServerFacts): void {
  if (number < MIN_SERVER_VERSION) {
    throw new Failure(
      'database_unusable',
      `the server of the site's database is PostgreSQL ${version}, and Latchkey needs 13 or newer: update it`,
    );
  }
  if (searchPath !== SCHEMA) {
    throw new Failure(
      'database_unusable',
      `the server of the site's database has not applied the settings of the hub (search_path is ${searchPath})`,
      {
        advice: POOLER_ADVICE,
      },
    );
  }
  if (standby)
    throw new Failure(
      'database_unavailable',
      "the server of the site's database is a standby, which can't be written: promote it, or let the URL of store.postgres_file lead to the primary server",
    );
}
