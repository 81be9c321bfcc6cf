import * as v from 'valibot';
import type { Connection } from '../../core/connections/connection.ts';
import type { Sealing } from '../keys/sealing.ts';
import { connectionAttributes, connectionName, parseJson, scope, sealed } from './schemas.ts';

const sealedAttributes = v.object(connectionAttributes);

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
export function toConnectionRow({ origin, damaged, ...columns }: Connection, sealing: Sealing): ConnectionRow {
  const content = JSON.stringify({ origin });
  return { ...columns, sealed: damaged ? '' : sealing.seal(connectionRowIdentity(columns), content) };
}

/** Opens a row. @throws Failure as {@link Sealing}, or `store_unreadable` if its content is invalid */
export function readConnection({ sealed, ...columns }: ConnectionRow, sealing: Sealing): Connection {
  const where = connectionRowIdentity(columns);
  return { ...columns, ...parseJson(sealedAttributes, where, sealing.open(where, sealed)) };
}

/** The connection of an unreadable row. */
export function unreadableConnection({ sealed: _, ...columns }: ConnectionRow): Connection {
  return { ...columns, origin: 'added', damaged: true };
}
