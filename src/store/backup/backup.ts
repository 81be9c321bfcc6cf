import type { Backup, RestoreReport } from '../../core/administration.ts';
import type { Appliance } from '../../core/appliances/appliance.ts';
import type { Session } from '../../core/appliances/session.ts';
import { type BackupContents, isExcludedFromBackup, type RestoredGrants } from '../../core/backup-contents.ts';
import { rfc3339 } from '../../core/clock.ts';
import type { Connection } from '../../core/connections/connection.ts';
import { Failure } from '../../core/failure.ts';
import type { Grant } from '../../core/grants/grant.ts';
import type { Secret } from '../../core/secret.ts';
import { forEachInSlices, mapInSlices } from '../../system/slices.ts';
import type { Sealing } from '../keys/sealing.ts';
import { type ApplianceRow, readAppliance, unreadableAppliance } from '../rows/appliance-row.ts';
import { type ConnectionRow, readConnection, unreadableConnection } from '../rows/connection-row.ts';
import { type GrantRow, readGrant } from '../rows/grant-row.ts';
import { readSession } from '../rows/session-row.ts';
import { readSetting } from '../rows/setting-row.ts';
import { decryptWithPassphrase, encryptWithPassphrase, parseBackup, serializeBackup } from './backup-file.ts';
import type { BackupStore, RestoredState, StoredRows } from './backup-store.ts';

/** Makes an encrypted backup of the state. @param now ms since 1970 */
export async function createBackup(store: BackupStore, passphrase: Secret, now: number): Promise<Backup> {
  const state = await captureState(store, now);
  return {
    copy: await encryptWithPassphrase(serializeBackup(state), passphrase),
    made: rfc3339(now),
    appliances: state.appliances.length,
    grants: state.grants.length,
  };
}

/** Decrypts a backup and restores it. @throws Failure `copy_unusable`, or as {@link restoreState} */
export async function restoreBackup(store: BackupStore, encrypted: string, passphrase: Secret): Promise<RestoreReport> {
  const state = parseBackup(await decryptWithPassphrase(encrypted.trim(), passphrase));
  const restoration = await restoreState(store, state);
  return { made: rfc3339(state.made), hubId: state.settings.get('hub_id') ?? '', ...restoration };
}

/**
 * Reads the whole state of the hub, as it is at one moment.
 * @param now ms since 1970
 * @throws Failure `store_unreadable` if the hub's own settings are damaged
 */
export async function captureState(store: BackupStore, now: number): Promise<BackupContents> {
  const content = await store.readAllRowsInSlices();
  // The store's key may be replaced between two slices.
  const { sealing } = content;
  const settings = new Map<string, string>();
  await forEachInSlices(content.settings.values(), (row) => {
    if (!isExcludedFromBackup(row.name)) settings.set(row.name, readSetting(row, sealing));
  });
  const grants = await mapInSlices(readableGrantRows(content), (row) => readGrant(row, sealing).grant);
  const connections = await mapInSlices(content.connections, (row) => readConnectionRow(row, content, sealing));
  const appliances = await mapInSlices(content.appliances, (row) => readApplianceRow(row, content, sealing));
  const sessions = await mapInSlices(content.sessions, (row) => readSession(row, sealing));
  return { made: now, settings, connections, appliances, grants, sessions };
}

/**
 * Restores a backup, all of it or nothing: the hub's identity, the connections and appliances that it does not have, and
 * each grant that is newer than the current one, with its sessions. What is not in the backup stays.
 * @throws Failure `appliance_exists` if a name or a client_id of the backup belongs to another appliance or connection
 *   that has a grant; or as {@link Store}
 */
export async function restoreState(store: BackupStore, backup: BackupContents): Promise<RestoredGrants> {
  const { restored, kept } = await store.restore((content) => planRestore(backup, content));
  return { restored, kept };
}

interface RestorePlan extends RestoredGrants {
  readonly state: RestoredState;
}

function planRestore(backup: BackupContents, content: StoredRows): RestorePlan {
  const { sealing } = content;
  const own = new Map(content.appliances.map((row) => [row.id, row]));
  const ownConnections = new Map(content.connections.map((row) => [row.id, row]));
  const withGrant = new Set(readableGrantRows(content).map(({ connection }) => connection));
  /** Connections without a grant whose name belongs to a connection of the backup, by id, with that connection. */
  const replacedConnections = new Map<string, Connection>();
  for (const connection of backup.connections) {
    if (ownConnections.has(connection.id)) continue;
    const other = content.connections.find(({ name }) => name === connection.name);
    if (other === undefined) continue;
    if (withGrant.has(other.id)) throw duplicateConnection(connection);
    replacedConnections.set(other.id, connection);
  }
  /** Appliances without a grant whose name or client_id belongs to an appliance of the backup. */
  const removedAppliances = new Set<string>();
  for (const appliance of backup.appliances) {
    if (own.has(appliance.id)) continue;
    for (const other of content.appliances) {
      if (other.name !== appliance.name && other.client_id !== appliance.clientId) continue;
      if (withGrant.has(other.connection)) throw duplicateAppliance(appliance, other);
      removedAppliances.add(other.id);
    }
  }
  const appliances = backup.appliances.filter(({ id }) => !own.has(id) || removedAppliances.has(id));
  const remaining = content.appliances.filter(({ id }) => !removedAppliances.has(id));
  const used = new Set([...remaining, ...appliances].map(({ connection }) => connection));
  const unused = content.connections.filter(
    (row) =>
      !used.has(row.id) &&
      content.appliances.some(({ connection }) => connection === row.id) &&
      readConnectionRow(row, content, sealing).origin === 'implicit',
  );
  const removedConnections = new Set([...replacedConnections.keys(), ...unused.map(({ id }) => id)]);
  const connections = backup.connections.filter(({ id }) => !ownConnections.has(id) || removedConnections.has(id));
  const names = new Map(backup.connections.map(({ id, name }) => [id, ownConnections.get(id)?.name ?? name]));
  const generationOf = (connection: string) => content.grants.get(connection)?.generation ?? 0;
  const isKept = ({ connection, generation }: Grant) =>
    withGrant.has(connection) && generationOf(connection) >= generation;
  const nameOf = ({ connection }: Grant) => names.get(connection) ?? connection;
  const grants = backup.grants.filter((grant) => !isKept(grant));
  const movedAppliances = remaining.flatMap((row) => {
    const connection = replacedConnections.get(row.connection);
    if (connection === undefined || names.has(row.connection)) return [];
    return [{ ...readApplianceRow(row, content, sealing), connection: connection.id }];
  });
  // If the current grant is kept, a session that the hub does not have was ended since the backup.
  const restoredGrants = new Set(grants.map(({ connection }) => connection));
  const connectionOf = new Map([...remaining, ...movedAppliances].map(({ id, connection }) => [id, connection]));
  const isReplaced = ({ appliance }: Session) =>
    appliances.some(({ id }) => id === appliance) || restoredGrants.has(connectionOf.get(appliance) ?? '');
  return {
    state: {
      settings: backup.settings,
      ...{ connections, appliances, removedConnections, removedAppliances, movedAppliances },
      grants: grants.map((grant) => fromBackup(grant, generationOf(grant.connection), backup.made)),
      sessions: backup.sessions.filter(isReplaced),
    },
    restored: grants.map(nameOf),
    kept: backup.grants.filter(isKept).map(nameOf),
  };
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

function readableGrantRows({ grants, unreadable }: StoredRows): GrantRow[] {
  return [...grants.values()].filter((row) => row.sealed !== null && !unreadable.has(`grants/${row.connection}`));
}

function readApplianceRow(row: ApplianceRow, { unreadable }: StoredRows, sealing: Sealing): Appliance {
  return unreadable.has(`appliances/${row.id}`) ? unreadableAppliance(row) : readAppliance(row, sealing);
}

function readConnectionRow(row: ConnectionRow, { unreadable }: StoredRows, sealing: Sealing): Connection {
  return unreadable.has(`connections/${row.id}`) ? unreadableConnection(row) : readConnection(row, sealing);
}
