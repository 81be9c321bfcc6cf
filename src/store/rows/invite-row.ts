import * as v from 'valibot';
import type { Invite } from '../../core/appliances/registration.ts';
import { instantSchema } from '../../system/instant-schema.ts';
import type { Sealing } from '../keys/sealing.ts';
import { parseJson, scope, sealed } from './schemas.ts';

const sealedAttributes = v.object({
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
  return { hash: row.hash, ...parseJson(sealedAttributes, where, sealing.open(where, row.sealed)) };
}

/** An invite as a row. */
export function toInviteRow({ hash, ...rest }: Invite, sealing: Sealing): InviteRow {
  return { hash, sealed: sealing.seal(inviteRowIdentity({ hash }), JSON.stringify(rest)) };
}
