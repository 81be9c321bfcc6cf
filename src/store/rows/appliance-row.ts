import * as v from 'valibot';
import type { Appliance } from '../../core/appliances/appliance.ts';
import type { Sealing } from '../keys/sealing.ts';
import { applianceAttributes, applianceName, parseJson, sealed } from './schemas.ts';

const sealedAttributes = v.object(applianceAttributes);

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
  return { ...cleartextColumns(row), ...parseJson(sealedAttributes, where, sealing.open(where, row.sealed)) };
}

/** The appliance of an unreadable row: it can't authenticate. */
export function unreadableAppliance(row: ApplianceRow): Appliance {
  const credentials = { kind: 'none', damaged: true } as const;
  return { ...cleartextColumns(row), credentials, origin: 'added', waiting: null, softwareId: null };
}

function cleartextColumns({ id, name, client_id, connection }: ApplianceRow) {
  return { id, name, clientId: client_id, connection };
}
