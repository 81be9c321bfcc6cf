import type { Appliance } from '../../core/appliances/appliance.ts';
import type { Connection } from '../../core/connections/connection.ts';
import { type ApplianceRow, readAppliance, unreadableAppliance } from '../rows/appliance-row.ts';
import { type ConnectionRow, readConnection, unreadableConnection } from '../rows/connection-row.ts';
import type { GrantRow } from '../rows/grant-row.ts';
import type { StoredRows } from './backup-store.ts';

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
