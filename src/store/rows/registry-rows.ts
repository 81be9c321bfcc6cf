import * as v from 'valibot';
import type { Appliance } from '../../core/appliances/appliance.ts';
import type { Invite } from '../../core/appliances/registration.ts';
import type { Connection } from '../../core/connections/connection.ts';
import { instantSchema } from '../../system/instant-schema.ts';
import type { Sealing } from '../keys/sealing.ts';
import {
  applianceAttributes,
  applianceName,
  connectionAttributes,
  connectionName,
  parseJson,
  scope,
  sealed,
} from './schemas.ts';

const connectionContent = v.object(connectionAttributes);

/** A row of `connections`. The clear columns keep the connection and its grant usable if the rest can't be read. */
export const connectionRow = v.object({
  id: v.pipe(v.string(), v.uuid()),
  name: connectionName,
  portal: v.string(),
  scope,
  sealed,
});

export type ConnectionRow = v.InferOutput<typeof connectionRow>;

/** The identity that a row is sealed with: its name, portal and scope. */
export function connectionRowIdentity({ id, name, portal, scope }: Omit<ConnectionRow, 'sealed'>): string {
  return JSON.stringify(['connections', id, name, portal, scope]);
}

/** A connection as a row. That of a damaged one stays damaged: it must not become valid because the hub writes it. */
export function toConnectionRow({ title, origin, damaged, ...columns }: Connection, sealing: Sealing): ConnectionRow {
  const content = JSON.stringify({ title, origin });
  return { ...columns, sealed: damaged ? '' : sealing.seal(connectionRowIdentity(columns), content) };
}

/** Opens a row. @throws Failure as {@link Sealing}, or `store_unreadable` if its content is invalid */
export function readConnection({ sealed, ...columns }: ConnectionRow, sealing: Sealing): Connection {
  const where = connectionRowIdentity(columns);
  return { ...columns, ...parseJson(connectionContent, where, sealing.open(where, sealed)) };
}

/** The connection of an unreadable row. */
export function unreadableConnection({ sealed: _, ...columns }: ConnectionRow): Connection {
  return { ...columns, title: columns.name, origin: 'added', damaged: true };
}

const applianceContent = v.object(applianceAttributes);

/** A row of `appliances`. The clear columns keep the appliance known if the rest can't be read. */
export const applianceRow = v.object({
  id: v.pipe(v.string(), v.uuid()),
  name: applianceName,
  client_id: v.string(),
  connection: v.string(),
  sealed,
});

export type ApplianceRow = v.InferOutput<typeof applianceRow>;

/** The identity that a row is sealed with: its names and its connection. */
export function applianceRowIdentity({ id, name, client_id, connection }: Omit<ApplianceRow, 'sealed'>): string {
  return JSON.stringify(['appliances', id, name, client_id, connection]);
}

/** An appliance as a row. That of a damaged one stays damaged: only removing the appliance ends that. */
export function toApplianceRow({ id, name, clientId, connection, ...rest }: Appliance, sealing: Sealing): ApplianceRow {
  const columns = { id, name, client_id: clientId, connection };
  const isDamaged = rest.credentials.kind === 'none' && rest.credentials.damaged === true;
  return { ...columns, sealed: isDamaged ? '' : sealing.seal(applianceRowIdentity(columns), JSON.stringify(rest)) };
}

/** Opens a row. @throws Failure as {@link Sealing}, or `store_unreadable` if its content is invalid */
export function readAppliance(row: ApplianceRow, sealing: Sealing): Appliance {
  const where = applianceRowIdentity(row);
  return { ...cleartextColumns(row), ...parseJson(applianceContent, where, sealing.open(where, row.sealed)) };
}

/** The appliance of an unreadable row: it can't authenticate. */
export function unreadableAppliance(row: ApplianceRow): Appliance {
  const credentials = { kind: 'none', damaged: true } as const;
  const rest = { credentials, origin: 'added', waiting: null, softwareId: null } as const;
  return { ...cleartextColumns(row), title: row.name, ...rest };
}

function cleartextColumns({ id, name, client_id, connection }: ApplianceRow) {
  return { id, name, clientId: client_id, connection };
}

const inviteContent = v.object({
  name: v.nullable(v.string()),
  scope,
  portal: v.string(),
  connection: v.exactOptional(v.string()),
  begun: instantSchema,
  lifetime: v.number(),
});

/** A row of `invites`. */
export const inviteRow = v.object({ hash: v.string(), sealed });

export type InviteRow = v.InferOutput<typeof inviteRow>;

/** The identity that a row is sealed with. */
export function inviteRowIdentity({ hash }: Pick<InviteRow, 'hash'>): string {
  return `invites/${hash}`;
}

/** Opens a row. @throws Failure as {@link Sealing}, or `store_unreadable` if its content is invalid */
export function readInvite(row: InviteRow, sealing: Sealing): Invite {
  const where = inviteRowIdentity(row);
  return { hash: row.hash, ...parseJson(inviteContent, where, sealing.open(where, row.sealed)) };
}

/** An invite as a row. */
export function toInviteRow({ hash, ...rest }: Invite, sealing: Sealing): InviteRow {
  return { hash, sealed: sealing.seal(inviteRowIdentity({ hash }), JSON.stringify(rest)) };
}
