import { Failure } from '../../../core/failure.ts';
import type { RegistryChange } from '../../../core/store.ts';
import type { Sql } from '../sql.ts';
import type { ApplianceTable } from './appliance-table.ts';
import type { ConnectionTable } from './connection-table.ts';
import type { InviteTable } from './invite-table.ts';

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
