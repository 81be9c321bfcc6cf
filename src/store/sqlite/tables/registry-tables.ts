import type { Appliance } from '../../../core/appliances/appliance.ts';
import type { Invite } from '../../../core/appliances/registration.ts';
import type { Connection } from '../../../core/connections/connection.ts';
import { Failure } from '../../../core/failure.ts';
import type { RegistryChange } from '../../../core/store.ts';
import {
  type ApplianceRow,
  type ConnectionRow,
  type InviteRow,
  readAppliance,
  readConnection,
  readInvite,
  toApplianceRow,
  toConnectionRow,
  toInviteRow,
  unreadableAppliance,
  unreadableConnection,
} from '../../rows/registry-rows.ts';
import { nullIfDamaged } from '../../rows/schemas.ts';
import type { Sql } from '../sql.ts';

/** The connections as rows. */
export class ConnectionTable {
  readonly #sql: Sql;

  constructor(sql: Sql) {
    this.#sql = sql;
  }

  all(): Connection[] {
    return this.#sql
      .all<ConnectionRow>('SELECT * FROM connections ORDER BY name')
      .map((row) => nullIfDamaged(() => readConnection(row, this.#sql.sealing)) ?? unreadableConnection(row));
  }

  /** @returns false if its id or its name is taken */
  add(connection: Connection): boolean {
    return this.#sql.run(
      'INSERT INTO connections (id, name, portal, scope, sealed) VALUES (?, ?, ?, ?, ?) ON CONFLICT DO NOTHING',
      ...this.#columnValues(connection),
    );
  }

  /** @returns false if it does not exist, or its name is taken */
  update(connection: Connection): boolean {
    return this.#sql.run(
      'UPDATE OR IGNORE connections SET (id, name, portal, scope, sealed) = (?, ?, ?, ?, ?) WHERE id = ?',
      ...this.#columnValues(connection),
      connection.id,
    );
  }

  /** Whether an appliance uses a connection. */
  isUsed(id: string): boolean {
    return this.#sql.get('SELECT id FROM appliances WHERE connection = ?', id) !== undefined;
  }

  has(id: string): boolean {
    return this.#sql.get('SELECT 1 FROM connections WHERE id = ?', id) !== undefined;
  }

  /** Removes a connection with its grant, pairings and history. */
  remove(id: string): void {
    this.#sql.run('DELETE FROM connections WHERE id = ?', id);
  }

  #columnValues(connection: Connection): unknown[] {
    const { id, name, portal, scope, sealed } = toConnectionRow(connection, this.#sql.sealing);
    return [id, name, portal, scope, sealed];
  }
}

/** The appliances as rows. */
export class ApplianceTable {
  readonly #sql: Sql;
  readonly #damaged = new Set<string>();

  constructor(sql: Sql) {
    this.#sql = sql;
  }

  /** Ids of the appliances that can't authenticate, because their rows were changed or can't be read. */
  get damaged(): ReadonlySet<string> {
    return this.#damaged;
  }

  all(): Appliance[] {
    this.#damaged.clear();
    return this.#sql.all<ApplianceRow>('SELECT * FROM appliances ORDER BY name').map((row) => this.#read(row));
  }

  /** @returns false if its id, its name or its client_id is taken, or its connection does not exist */
  add(appliance: Appliance): boolean {
    return this.#sql.run(
      `INSERT INTO appliances (id, name, client_id, connection, sealed)
       SELECT ?, ?, ?, ?, ? FROM connections WHERE id = ? ON CONFLICT DO NOTHING`,
      ...this.#columnValues(appliance),
      appliance.connection,
    );
  }

  /**
   * A damaged row stays damaged: only removing the appliance ends that.
   * @returns false if it or its connection does not exist, or its name or its client_id is taken
   */
  update(appliance: Appliance): boolean {
    return this.#sql.run(
      `UPDATE OR IGNORE appliances SET (id, name, client_id, connection, sealed) = (?, ?, ?, ?, ?)
       WHERE id = ? AND EXISTS (SELECT id FROM connections WHERE id = ?)`,
      ...this.#columnValues(appliance, this.#damaged.has(appliance.id) ? '' : undefined),
      appliance.id,
      appliance.connection,
    );
  }

  remove(id: string): void {
    this.#sql.run('DELETE FROM appliances WHERE id = ?', id);
  }

  /** Call this when the transaction that has removed appliances is on disk. */
  clearDamaged(ids: Iterable<string>): void {
    for (const id of ids) this.#damaged.delete(id);
  }

  #columnValues(appliance: Appliance, sealed?: string): string[] {
    const { id, name, client_id, connection, ...row } = toApplianceRow(appliance, this.#sql.sealing);
    return [id, name, client_id, connection, sealed ?? row.sealed];
  }

  #read(row: ApplianceRow): Appliance {
    const appliance = nullIfDamaged(() => readAppliance(row, this.#sql.sealing));
    if (appliance === null) this.#damaged.add(row.id);
    return appliance ?? unreadableAppliance(row);
  }
}

/** The unused invites as rows. */
export class InviteTable {
  readonly #sql: Sql;
  /** The hashes of those that the hub has not issued. */
  readonly rejected = new Set<string>();
  #rejectedHashes: string[] = [];

  constructor(sql: Sql) {
    this.#sql = sql;
  }

  all(): Invite[] {
    this.#rejectedHashes = [];
    return this.#sql.all<InviteRow>('SELECT * FROM invites').flatMap((row) => {
      const invite = nullIfDamaged(() => readInvite(row, this.#sql.sealing));
      if (invite !== null) return [invite];
      this.rejected.add(row.hash);
      this.#rejectedHashes.push(row.hash);
      return [];
    });
  }

  /** Whether {@link all} has rejected invites, which {@link removeRejected} removes. */
  get hasRowsToRemove(): boolean {
    return this.#rejectedHashes.length > 0;
  }

  removeRejected(): void {
    for (const hash of this.#rejectedHashes) this.remove(hash);
  }

  save(invite: Invite): void {
    const { hash, sealed } = toInviteRow(invite, this.#sql.sealing);
    this.#sql.run('INSERT OR REPLACE INTO invites (hash, sealed) VALUES (?, ?)', hash, sealed);
  }

  /** @returns false if there is no such invite */
  remove(hash: string): boolean {
    return this.#sql.run('DELETE FROM invites WHERE hash = ?', hash);
  }
}

/** Changes of connections and appliances together, in their tables. */
export class RegistryTables {
  readonly #sql: Sql;
  readonly #connections: ConnectionTable;
  readonly #appliances: ApplianceTable;
  readonly #invites: InviteTable;

  constructor(sql: Sql, connections: ConnectionTable, appliances: ApplianceTable, invites: InviteTable) {
    this.#sql = sql;
    this.#connections = connections;
    this.#appliances = appliances;
    this.#invites = invites;
  }

  /** @returns false if it is not possible; nothing has changed then */
  tryChange(change: RegistryChange): boolean {
    const conflict = new Failure('unexpected', 'the store has changed meanwhile');
    try {
      this.#sql.transaction(() => {
        if (!this.#apply(change)) throw conflict;
      });
      return true;
    } catch (error) {
      if (error === conflict) return false;
      throw error;
    }
  }

  /** Removes what was added but could not be synced, so that it can be added again. */
  withdrawAdded({ addedAppliances = [], addedConnections = [] }: RegistryChange): void {
    try {
      for (const { id } of addedAppliances) this.#appliances.remove(id);
      for (const { id } of addedConnections) this.#connections.remove(id);
    } catch {
      // Nothing can be written any more. The next start may find it.
    }
  }

  /** @returns false if a part of the change is not possible; the caller must roll back the parts before it */
  #apply(change: RegistryChange): boolean {
    const { removedConnections = [], usedInvite } = change;
    const isWritten =
      (change.addedConnections ?? []).every((connection) => this.#connections.add(connection)) &&
      (change.updatedConnections ?? []).every((connection) => this.#connections.update(connection)) &&
      (change.addedAppliances ?? []).every((appliance) => this.#appliances.add(appliance)) &&
      (change.updatedAppliances ?? []).every((appliance) => this.#appliances.update(appliance));
    for (const id of change.removedAppliances ?? []) this.#appliances.remove(id);
    if (!isWritten || removedConnections.some((id) => this.#connections.isUsed(id))) return false;
    for (const id of removedConnections) this.#connections.remove(id);
    return usedInvite === undefined || this.#invites.remove(usedInvite);
  }
}
