import { isDeepStrictEqual } from 'node:util';
import { type Appliance, connectionIds } from '../../core/appliances/appliance.ts';
import { type Session, sessionConnection } from '../../core/appliances/session.ts';
import { type BackupContents, isExcludedFromBackup, type RestoredGrants } from '../../core/backup-contents.ts';
import type { Connection } from '../../core/connections/connection.ts';
import { Failure } from '../../core/failure.ts';
import type { Grant } from '../../core/grants/grant.ts';
import type { GrantRow } from '../rows/grant-row.ts';
import {
  type ApplianceRow,
  type ConnectionRow,
  readAppliance,
  readConnection,
  unreadableAppliance,
  unreadableConnection,
} from '../rows/registry-rows.ts';
import type { RestoredState, StoredRows } from './backup-store.ts';

/** The changes that a restore makes, and what it reports about grants. */
interface RestorePlan extends RestoredGrants {
  readonly state: RestoredState;
}

/**
 * Decides what a restore changes in a store. Its time grows with the number of rows, not with their product.
 * @param content all rows of the store
 * @throws Failure `appliance_exists` if a name or a client_id of the backup belongs to another appliance or connection
 *   that has a grant
 */
export function planRestore(backup: BackupContents, content: StoredRows): RestorePlan {
  const own = new Map(content.appliances.map((row) => [row.id, row]));
  const ownConnections = new Map(content.connections.map((row) => [row.id, row]));
  const withGrant = new Set(readableGrantRows(content).map(({ connection }) => connection));
  const replacedConnections = findReplacedConnections(backup, content, withGrant);
  const removedAppliances = findReplacedAppliances(backup, content, withGrant);
  const appliances = backup.appliances.filter(({ id }) => !own.has(id) || removedAppliances.has(id));
  const before = content.appliances.map((row) => readApplianceRow(row, content));
  const staying = before.filter(({ id }) => !removedAppliances.has(id));
  const used = new Set([...staying, ...appliances].flatMap(connectionIds));
  const usedBefore = new Set(before.flatMap(connectionIds));
  const unused = content.connections.filter(
    (row) => !used.has(row.id) && usedBefore.has(row.id) && readConnectionRow(row, content).origin === 'implicit',
  );
  const removedConnections = new Set([...replacedConnections.keys(), ...unused.map(({ id }) => id)]);
  const connections = backup.connections.filter(({ id }) => !ownConnections.has(id) || removedConnections.has(id));
  const names = new Map(backup.connections.map(({ id, name }) => [id, ownConnections.get(id)?.name ?? name]));
  const generationOf = (connection: string) => content.grants.get(connection)?.generation ?? 0;
  const isKept = ({ connection, generation }: Grant) =>
    withGrant.has(connection) && generationOf(connection) >= generation;
  const nameOf = ({ connection }: Grant) => names.get(connection) ?? connection;
  const grants = backup.grants.filter((grant) => !isKept(grant));
  const restoredId = (id: string) => (names.has(id) ? id : (replacedConnections.get(id)?.id ?? id));
  const movedAppliances = staying.flatMap((appliance) => {
    const [connection = '', ...more] = connectionIds(appliance).map(restoredId);
    const moved = { ...appliance, connection, ...(more.length > 0 && { more }) };
    return isDeepStrictEqual(moved, appliance) ? [] : [moved];
  });
  // If the current grant is kept, a session that the hub does not have was ended since the backup.
  const restoredGrants = new Set(grants.map(({ connection }) => connection));
  const connectionsOf = new Map([...staying, ...movedAppliances].map((one) => [one.id, connectionIds(one)]));
  const addedAppliances = new Set(appliances.map(({ id }) => id));
  const isReplaced = (session: Session) => {
    const used = connectionsOf.get(session.appliance) ?? [];
    const connection = sessionConnection(session, used);
    const ids = connection === undefined ? used : [connection];
    return addedAppliances.has(session.appliance) || ids.some((id) => restoredGrants.has(id));
  };
  return {
    state: {
      settings: restoredSettings(backup, content),
      connections,
      appliances,
      removedConnections,
      removedAppliances,
      movedAppliances,
      grants: grants.map((grant) => fromBackup(grant, generationOf(grant.connection), backup.made)),
      sessions: backup.sessions.filter(isReplaced),
    },
    restored: grants.map(nameOf),
    kept: backup.grants.filter(isKept).map(nameOf),
  };
}

/** The connections without a grant whose name belongs to a connection of the backup, by id, with that connection. */
function findReplacedConnections(
  backup: BackupContents,
  content: StoredRows,
  withGrant: ReadonlySet<string>,
): ReadonlyMap<string, Connection> {
  const ids = new Set(content.connections.map(({ id }) => id));
  const byName = new Map(content.connections.map((row) => [row.name, row]));
  const replaced = new Map<string, Connection>();
  for (const connection of backup.connections) {
    if (ids.has(connection.id)) continue;
    const other = byName.get(connection.name);
    if (other === undefined) continue;
    if (withGrant.has(other.id)) throw duplicateConnection(connection);
    replaced.set(other.id, connection);
  }
  return replaced;
}

/** The ids of appliances without a grant whose name or client_id belongs to an appliance of the backup. */
function findReplacedAppliances(
  backup: BackupContents,
  content: StoredRows,
  withGrant: ReadonlySet<string>,
): ReadonlySet<string> {
  const ids = new Set(content.appliances.map(({ id }) => id));
  const byName = new Map(content.appliances.map((row) => [row.name, row]));
  const byClientId = new Map(content.appliances.map((row) => [row.client_id, row]));
  const replaced = new Set<string>();
  for (const appliance of backup.appliances) {
    if (ids.has(appliance.id)) continue;
    for (const other of [byName.get(appliance.name), byClientId.get(appliance.clientId)]) {
      if (other === undefined) continue;
      if (withGrant.has(other.connection)) throw duplicateAppliance(appliance, other);
      replaced.add(other.id);
    }
  }
  return replaced;
}

/** The settings of the backup, and what is left of another CA, emptied: parts of two CAs do not belong together. */
function restoredSettings({ settings }: BackupContents, content: StoredRows): ReadonlyMap<string, string> {
  const restored = new Map([...settings].filter(([name]) => !isExcludedFromBackup(name)));
  if (![...restored.keys()].some(isOfCa)) return restored;
  for (const name of content.settings.keys()) if (isOfCa(name) && !restored.has(name)) restored.set(name, '');
  return restored;
}

/** Whether a setting is a part of the CA or of the one that it has replaced. */
function isOfCa(setting: string): boolean {
  return setting.startsWith('ca_');
}

function duplicateConnection({ name }: Connection): Failure {
  return new Failure(
    'appliance_exists',
    `the backup contains a connection ${name}, and this hub has a different one with the same name and its own grant: remove that first ("latchkey connection remove ${name}", or "latchkey appliance remove ${name}" if it is an appliance's own); nothing was changed`,
  );
}

function duplicateAppliance({ name, clientId }: Appliance, other: ApplianceRow): Failure {
  const shared = other.name === name ? 'name' : `client_id (${clientId})`;
  return new Failure(
    'appliance_exists',
    `the backup contains an appliance ${name}, and this hub has a different one with the same ${shared} and its own grant: remove that first ("latchkey appliance remove ${other.name}"); nothing was changed`,
  );
}

/** The grant is in doubt: this hub or another one may have used it since the backup was made. */
function fromBackup(grant: Grant, generation: number, made: number): Grant {
  const lostAt = { boot: '', uptime: 0, wall: made };
  return {
    ...grant,
    generation: Math.max(generation + 1, grant.generation),
    doubt: grant.doubt ?? { kind: 'copy', lostAt, sends: 0 },
  };
}

/** The rows of grants that have tokens and can be read. */
export function readableGrantRows({ grants, unreadable }: StoredRows): GrantRow[] {
  return [...grants.values()].filter((row) => row.sealed !== null && !unreadable.has(`grants/${row.connection}`));
}

/** The appliance of a row, readable or not. */
export function readApplianceRow(row: ApplianceRow, { unreadable, sealing }: StoredRows): Appliance {
  return unreadable.has(`appliances/${row.id}`) ? unreadableAppliance(row) : readAppliance(row, sealing);
}

/** The connection of a row, readable or not. */
export function readConnectionRow(row: ConnectionRow, { unreadable, sealing }: StoredRows): Connection {
  return unreadable.has(`connections/${row.id}`) ? unreadableConnection(row) : readConnection(row, sealing);
}
