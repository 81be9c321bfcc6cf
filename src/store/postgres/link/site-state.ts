import type { OwnSiteEntry, SiteHub, SiteWork } from '../../../core/site.ts';
import { SCHEMA } from '../database/connections.ts';
import { IS_SYNCHRONOUS, type Statements } from '../database/sql.ts';

/** A hub that was not seen for this long is not expected to do anything, in ms. */
const ALIVE_TIME = 15_000;
/** A hub that was not seen for this long is removed, in days. */
const HUB_RETENTION_DAYS = 30;
/** How long changes are kept, in hours: see news.ts. */
const CHANGES_HOURS = 2;
/** How long the clocks of boots are kept, in days: no token that was stored then is still valid. */
const CLOCKS_DAYS = 400;

/** Writes that this hub is alive and whether commits wait for a standby, and reads the hubs of the site, by id. */
export async function writeHeartbeat(
  sql: Statements,
  hubId: string,
  { name, address, version }: OwnSiteEntry,
): Promise<SiteHub[]> {
  // Like any commit, this one waits for the standby, which has everything before it too then.
  await sql.run(`UPDATE site SET synchronous = NOT synchronous WHERE synchronous <> (${IS_SYNCHRONOUS})`);
  await sql.run(
    `INSERT INTO hubs (id, name, address, version, last_seen) VALUES ($1, $2, $3, $4, clock_timestamp())
     ON CONFLICT (id) DO UPDATE SET name = $2, address = $3, version = $4, last_seen = clock_timestamp()`,
    ...[hubId, name, address, version],
  );
  return readHubs(sql);
}

/** The hubs of the site, by id. */
export function readHubs(sql: Statements): Promise<SiteHub[]> {
  return sql.all<SiteHub>(
    `SELECT id, name, address, version, (extract(epoch FROM last_seen) * 1000)::float8 AS "lastSeen",
       last_seen BETWEEN clock_timestamp() - ${ALIVE_TIME} * interval '1 ms'
         AND clock_timestamp() + ${ALIVE_TIME} * interval '1 ms' AS "isAlive"
     FROM hubs ORDER BY id`,
  );
}

/** See `Store.holdLease`. */
export async function takeLease(sql: Statements, hubId: string, work: SiteWork): Promise<boolean> {
  const count = await sql.run(
    `INSERT INTO leases (work, holder, until) VALUES ($1, $2, clock_timestamp() + ${WORK_LEASE} * interval '1 ms')
     ON CONFLICT (work) DO UPDATE SET holder = excluded.holder, until = excluded.until
     WHERE leases.holder = excluded.holder OR ${hasEnded('leases.until', WORK_LEASE)}`,
    ...[work, hubId],
  );
  return count > 0;
}

/** Deletes what no hub needs any more. */
export async function cleanUp(sql: Statements): Promise<void> {
  await sql.run(`DELETE FROM changes WHERE at < clock_timestamp() - ${CHANGES_HOURS} * interval '1 hour'`);
  await sql.run(`DELETE FROM clocks WHERE updated < clock_timestamp() - ${CLOCKS_DAYS} * interval '1 day'`);
  await sql.run(
    `DELETE FROM hub_settings WHERE hub IN
       (SELECT id FROM hubs WHERE last_seen < clock_timestamp() - ${HUB_RETENTION_DAYS} * interval '1 day')`,
  );
  await sql.run(`DELETE FROM hubs WHERE last_seen < clock_timestamp() - ${HUB_RETENTION_DAYS} * interval '1 day'`);
}

/** Removes a hub from the list; it comes back when it is seen again. */
export async function removeHub(sql: Statements, hubId: string): Promise<void> {
  await sql.run('DELETE FROM hub_settings WHERE hub = $1', hubId);
  await sql.run('DELETE FROM hubs WHERE id = $1', hubId);
}

/** A server as {@link checkServer} knows it. */
interface ServerRow {
  /**
   * The cluster, the database, its tables and the timeline: a promotion changes only that, a copy something before it,
   * and so does a crash that may have lost commits.
   */
  readonly server: string;
  /** Whether commits wait for a standby. */
  readonly synchronous: boolean;
}

/**
 * SQL: when a server that does not wait for the disk has crashed last: only a crash resets its statistics. Null for any
 * other server, because a crash costs it nothing.
 */
const LAST_LOSSY_CRASH = `CASE WHEN 'off' IN (current_setting('fsync'), current_setting('synchronous_commit'))
    THEN (SELECT extract(epoch FROM stats_reset)::bigint FROM pg_stat_archiver) END`;

/** SQL: the server that executes it, see {@link ServerRow}. */
export const SERVER = `concat_ws('/', (SELECT system_identifier FROM pg_control_system()),
    (SELECT oid FROM pg_database WHERE datname = current_database()), '${SCHEMA}.grants'::regclass::oid,
    ${LAST_LOSSY_CRASH},
    substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8))`;

/** What a hub knows of the server that it has used so far. */
interface FormerServer {
  /** See {@link checkServer}. */
  readonly server: string;
  /** The time of this hub's last heartbeat that it knows to be committed, see `SiteHub`; null if there is none. */
  readonly lastSeen: number | null;
}

/** The server that a hub uses from now on. */
interface CheckedServer {
  /** A hub that has used another one before reads everything again. */
  readonly server: string;
  /** Whether the grants are in doubt from now on, so that the other hubs must hear of it. */
  readonly mayHaveLost: boolean;
}

/**
 * Compares the server with the one that the site has had so far. Another one means that a standby was promoted or a
 * copy restored: then the grants are no longer confirmed. Only a standby for which commits waited is trusted to have
 * everything, if a hub that has used the former server finds its last heartbeat there, and until one does not. Call it
 * in a transaction.
 * @param former null for a hub that starts
 */
export async function checkServer(sql: Statements, hubId: string, former: FormerServer | null): Promise<CheckedServer> {
  const [before] = await sql.all<ServerRow>('SELECT server, synchronous FROM site FOR UPDATE');
  const [now] = await sql.all<ServerRow>(`SELECT ${SERVER} AS server, ${IS_SYNCHRONOUS} AS synchronous`);
  if (now === undefined) return { server: '', mayHaveLost: false };
  const { server, synchronous } = now;
  const hasHeartbeat = former !== null && (await findsHeartbeat(sql, hubId, former.lastSeen));
  const isSwitch = before !== undefined && before.server !== server;
  const isPromotion = isSwitch && withoutTimeline(before.server) === withoutTimeline(server);
  const mayHaveLost = isSwitch
    ? !(isPromotion && before.synchronous && hasHeartbeat)
    : former !== null && former.server !== server && !hasHeartbeat;
  if (mayHaveLost) await sql.run('UPDATE grants SET confirmed = false WHERE sealed IS NOT NULL');
  await sql.run(
    `INSERT INTO site (server, synchronous) VALUES ($1, $2)
     ON CONFLICT (id) DO UPDATE SET server = $1, synchronous = $2,
       switched_at = CASE WHEN $3 THEN clock_timestamp() ELSE site.switched_at END`,
    ...[server, synchronous, mayHaveLost],
  );
  return { server, mayHaveLost };
}

function withoutTimeline(server: string): string {
  return server.slice(0, server.lastIndexOf('/'));
}

async function findsHeartbeat(sql: Statements, hubId: string, lastSeen: number | null): Promise<boolean> {
  const hubs = await readHubs(sql);
  return lastSeen !== null && hubs.some((hub) => hub.id === hubId && hub.lastSeen >= lastSeen);
}

/**
 * How long a hub has a refresh to itself, in ms by the database's clock: longer than the longest time from taking the
 * lease to the end of the answer, which is the time below and that of a request (`TOKEN_REQUEST_LIMITS`: 120 s).
 */
export const REFRESH_LEASE = 180_000;
/** How long after it has asked for the lease a hub may begin to send the refresh, in ms on its boot clock. */
export const SEND_TIME = 50_000;
/** How long a hub owns a pairing that it runs, and has other work to itself, in ms by the database's clock. */
export const WORK_LEASE = 30_000;

/**
 * SQL: whether a lease has ended by the database's clock. If more than its whole duration seems to be left, that clock
 * was set back, and the lease has ended too.
 * @param column its end
 * @param lease its duration, in ms
 */
export function hasEnded(column: string, lease: number): string {
  return `(${column} < clock_timestamp() OR ${column} > clock_timestamp() + ${lease} * interval '1 ms')`;
}

/**
 * How long the hubs have, after a switch to a server that may have lost commits, to write what they know again, in ms
 * by the database's clock. Until then nobody begins a refresh of a grant that may be older than what another hub knows.
 * A hub that is looking for the database usually finds it within that time: see `RETRY_PAUSE` and `CONNECT_TIMEOUT`.
 */
export const SETTLING_TIME = 10_000;

/** SQL: whether that time has not ended. A server whose clock was set back does not settle for ever. */
export const IS_SETTLING = `EXISTS (SELECT FROM site
  WHERE clock_timestamp() BETWEEN switched_at AND switched_at + ${SETTLING_TIME} * interval '1 ms')`;
