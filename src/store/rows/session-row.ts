import * as v from 'valibot';
import type { Session } from '../../core/appliances/session.ts';
import { instantSchema } from '../../system/instant-schema.ts';
import type { Sealing } from '../keys/sealing.ts';
import { parseJson, sealed } from './schemas.ts';

const sealedAttributes = v.object({ begun: instantSchema, connection: v.exactOptional(v.string()) });

/** A row of `sessions`; `number` is the order in which they were issued. */
export const sessionRow = v.object({
  number: v.number(),
  hash: v.string(),
  appliance: v.string(),
  device: v.string(),
  sealed,
});

export type SessionRow = v.InferOutput<typeof sessionRow>;

/** The identity that a row is sealed with: this token of this appliance. */
export function sessionRowIdentity({
  hash,
  appliance,
  device,
}: Pick<Session, 'hash' | 'appliance' | 'device'>): string {
  return `sessions/${hash}/${appliance}/${device}`;
}

/** Opens a row. @throws Failure as {@link Sealing}, or `store_unreadable` if its content is invalid */
export function readSession(row: SessionRow, sealing: Sealing): Session {
  const where = sessionRowIdentity(row);
  const { hash, appliance, device } = row;
  return { hash, appliance, device, ...parseJson(sealedAttributes, where, sealing.open(where, row.sealed)) };
}

/** A session as a row, without the number that its table gives it. */
export function toSessionRow({ begun, connection, ...columns }: Session, sealing: Sealing): Omit<SessionRow, 'number'> {
  return { ...columns, sealed: sealing.seal(sessionRowIdentity(columns), JSON.stringify({ begun, connection })) };
}
