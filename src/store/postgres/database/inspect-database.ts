import { SITE_SCHEMA_VERSION } from '../schema.ts';
import { type DatabaseAddress, newClient, SCHEMA } from './connections.ts';
import { startFailure } from './errors.ts';
import { MIN_SERVER_VERSION } from './site-connection.ts';
import { IS_SYNCHRONOUS, type Statements, sqlOf } from './sql.ts';

/** What a hub needs to know about the database of its site, without changing anything. */
export interface DatabaseInspection {
  /** Such as `15.6`. */
  readonly serverVersion: string;
  readonly isTooOld: boolean;
  /** The version of TLS, such as `TLSv1.3`; null without TLS. */
  readonly tls: string | null;
  /** Whether the server can't be written, because it follows another one. */
  readonly isStandby: boolean;
  /** By how much the server's clock is ahead of this machine's, in ms. */
  readonly clockAheadMs: number;
  /** Whether the user may do what a hub does. */
  readonly hasRights: boolean;
  /** The schema of the site's tables, and whether this version may use it; null if there is none yet. */
  readonly schema: { readonly version: number; readonly isKnown: boolean } | null;
  /** Whether a commit is on the disk before it counts, and also at a standby. */
  readonly commits: 'not_durable' | 'durable' | 'at_standby';
}

/** How long the connection may take, in ms. */
const CONNECT_TIMEOUT = 3000;

/**
 * Inspects the database of a site.
 * @param wall this machine's clock, in ms since 1970
 * @throws Failure `database_unavailable` or `database_unusable` if that is not possible
 */
export async function inspectDatabase(address: DatabaseAddress, wall: () => number): Promise<DatabaseInspection> {
  const client = newClient(address, 'latchkey-doctor', { connectTimeout: CONNECT_TIMEOUT });
  client.on('error', () => undefined);
  try {
    await client.connect();
    return await inspect(sqlOf(client), wall);
  } catch (error) {
    throw startFailure(error, address.description);
  } finally {
    await client.end().catch(() => undefined);
  }
}

async function inspect(sql: Statements, wall: () => number): Promise<DatabaseInspection> {
  const before = wall();
  const [clock] = await sql.all<{ now: number }>(
    'SELECT (extract(epoch FROM clock_timestamp()) * 1000)::float8 AS now',
  );
  const after = wall();
  const [server] = await sql.all<{ number: number; version: string; standby: boolean; tls: string | null }>(
    `SELECT current_setting('server_version_num')::int AS number, current_setting('server_version') AS version,
       pg_is_in_recovery() AS standby, (SELECT version FROM pg_stat_ssl WHERE pid = pg_backend_pid() AND ssl) AS tls`,
  );
  const [commits] = await sql.all<{ durable: boolean; synchronous: boolean }>(
    `SELECT current_setting('synchronous_commit') <> 'off' AND current_setting('fsync') <> 'off' AS durable,
       ${IS_SYNCHRONOUS} AS synchronous`,
  );
  const { number = 0, version = '', standby = false, tls = null } = server ?? {};
  return {
    // Debian adds the version of its package.
    serverVersion: version.split(' ')[0] ?? '',
    isTooOld: number < MIN_SERVER_VERSION,
    tls,
    isStandby: standby,
    clockAheadMs: (clock?.now ?? before) - (before + after) / 2,
    ...(await inspectSchema(sql)),
    commits: commits?.durable !== true ? 'not_durable' : commits.synchronous ? 'at_standby' : 'durable',
  };
}

async function inspectSchema(sql: Statements): Promise<Pick<DatabaseInspection, 'hasRights' | 'schema'>> {
  const [found] = await sql.all<{ exists: boolean; hasRights: boolean }>(
    `SELECT to_regclass($1 || '.schema') IS NOT NULL AS exists,
       CASE WHEN to_regnamespace($1) IS NULL THEN has_database_privilege(current_database(), 'CREATE')
         ELSE has_schema_privilege($1, 'USAGE') AND has_schema_privilege($1, 'CREATE') AND NOT EXISTS (
           SELECT FROM pg_class WHERE relnamespace = to_regnamespace($1) AND relkind = 'r'
             AND NOT pg_has_role(relowner, 'USAGE'))
       END AS "hasRights"`,
    SCHEMA,
  );
  const hasRights = found?.hasRights === true;
  if (found?.exists !== true || !hasRights) return { hasRights, schema: null };
  const [stored] = await sql.all<{ version: number }>(`SELECT version FROM ${SCHEMA}.schema`);
  if (stored === undefined) return { hasRights, schema: null };
  return { hasRights, schema: { version: stored.version, isKnown: stored.version === SITE_SCHEMA_VERSION } };
}
