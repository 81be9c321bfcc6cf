import type { Appliance } from '../../core/appliances/appliance.ts';
import type { Session } from '../../core/appliances/session.ts';
import { Failure } from '../../core/failure.ts';
import type { Grant } from '../../core/grants/grant.ts';
import { HUB_ID, HUB_SETTINGS } from '../../core/site.ts';
import type { RestoredState } from '../backup/backup-store.ts';
import type { Sealing } from '../keys/sealing.ts';
import { toGrantRow } from '../rows/grant-row.ts';
import { toApplianceRow } from '../rows/registry-rows.ts';
import { toSessionRow } from '../rows/session-row.ts';
import type { Statements } from './database/sql.ts';
import { insertAppliance, insertConnection } from './tables/registry.ts';
import { dropSurplusSessions } from './tables/sessions.ts';
import { saveSetting } from './tables/settings.ts';
import { NO_ATTEMPT } from './tables/site-grant-row.ts';

/**
 * The revision of what a restore writes: higher than any that a hub may remember of a row that was removed since, so
 * that no hub takes the restored one for an old one.
 */
const REVISION = '(extract(epoch FROM clock_timestamp()) * 1000)::bigint';

/**
 * Writes a restore in a transaction.
 * @param hubId the hub that restores
 * @throws Failure `appliance_exists` if two connections or appliances have the same name or client_id; the errors of
 * `pg`
 */
export async function writeRestore(
  sql: Statements,
  sealing: Sealing,
  state: RestoredState,
  hubId: string,
): Promise<void> {
  // A connection may be replaced by one with the same id, which its appliances go on using.
  await sql.run('SET CONSTRAINTS ALL DEFERRED');
  await sql.run('DELETE FROM appliances WHERE id = ANY ($1)', [...state.removedAppliances]);
  await sql.run('DELETE FROM connections WHERE id = ANY ($1)', [...state.removedConnections]);
  for (const [name, value] of state.settings) {
    if (!HUB_SETTINGS.has(name)) await saveSetting(sql, name, value, sealing, hubId);
  }
  for (const connection of state.connections) {
    if (await insertConnection(sql, connection, sealing, REVISION)) continue;
    throw new Failure(
      'appliance_exists',
      `two connections have the name ${connection.name}: rename one, make a new backup, and restore that`,
    );
  }
  for (const appliance of state.movedAppliances) await moveAppliance(sql, sealing, appliance);
  for (const appliance of state.appliances) {
    if (await insertAppliance(sql, appliance, sealing, REVISION)) continue;
    throw new Failure(
      'appliance_exists',
      `two appliances have the name or the client_id of ${appliance.name}: rename or remove one, make a new backup, and restore that`,
    );
  }
  for (const grant of state.grants) await saveGrant(sql, sealing, grant);
  await addOlderSessions(sql, sealing, state.sessions);
  await sql.run('SET CONSTRAINTS ALL IMMEDIATE');
  await claimHubId(sql, sealing, state.settings.get('hub_id'), hubId);
}

async function moveAppliance(sql: Statements, sealing: Sealing, appliance: Appliance): Promise<void> {
  const { id, name, client_id, connection, sealed } = toApplianceRow(appliance, sealing);
  await sql.run(
    `UPDATE appliances SET name = $2, client_id = $3, connection = $4, sealed = $5, revision = ${REVISION} WHERE id = $1`,
    ...[id, name, client_id, connection, sealed],
  );
}

/** Writes a grant, whatever the store has: an open attempt of another hub ends without an outcome. */
async function saveGrant(sql: Statements, sealing: Sealing, grant: Grant): Promise<void> {
  const { connection, generation, sealed, doubt, refused, distrusted, misconfigured } = toGrantRow(grant, sealing);
  await sql.run(
    `INSERT INTO grants (connection, generation, sealed, doubt, refused, distrusted, misconfigured, revision)
     VALUES ($1, $2, $3, $4, $5, $6, $7, ${REVISION})
     ON CONFLICT (connection) DO UPDATE SET generation = $2, sealed = $3, ${NO_ATTEMPT}, doubt = $4, refused = $5,
       distrusted = $6, misconfigured = $7, revision = greatest(grants.revision + 1, excluded.revision),
       confirmed = true`,
    ...[connection, generation, sealed, doubt, refused, distrusted, misconfigured],
  );
}

/** Adds sessions of a backup, oldest first. The current sessions stay, and count as newer. */
async function addOlderSessions(sql: Statements, sealing: Sealing, sessions: readonly Session[]): Promise<void> {
  const [first] = await sql.all<{ number: number }>('SELECT coalesce(min(number), 1) AS number FROM sessions');
  let number = (first?.number ?? 1) - sessions.length;
  for (const session of sessions) {
    const { hash, appliance, device, sealed } = toSessionRow(session, sealing);
    await sql.run(
      `INSERT INTO sessions (number, hash, appliance, device, sealed) VALUES ($1, $2, $3, $4, $5)
         ON CONFLICT DO NOTHING`,
      ...[number, hash, appliance, device, sealed],
    );
    number += 1;
  }
  await dropSurplusSessions(sql, sealing);
}

/**
 * Reserves the id of the hub that made the backup, unless another hub of the site has it. The hub that restores has
 * it as its setting `hub_id` until its next start, which takes it over.
 */
async function claimHubId(sql: Statements, sealing: Sealing, wanted: string | undefined, hubId: string): Promise<void> {
  if (wanted === undefined || wanted === hubId || !HUB_ID.test(wanted)) return;
  const claimed = await sql.run(
    `INSERT INTO hubs (id, name, address, version, last_seen)
       SELECT $1, name, address, version, clock_timestamp() FROM hubs WHERE id = $2 ON CONFLICT DO NOTHING`,
    ...[wanted, hubId],
  );
  if (claimed === 0) return;
  await saveSetting(sql, 'hub_id', wanted, sealing, hubId);
}
