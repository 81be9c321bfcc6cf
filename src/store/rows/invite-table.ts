import * as v from 'valibot';
import type { Invite } from '../../core/appliances/registration.ts';
import { instantSchema } from '../../system/instant-schema.ts';
import type { Sql } from '../database/sql.ts';
import type { Sealing } from '../keys/sealing.ts';
import { nullIfDamaged, parseJson, scope, sealed } from './schemas.ts';

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

/** The unused invites as rows. */
export class InviteTable {
  readonly #sql: Sql;
  #hasRejected = false;
  #rejectedHashes: string[] = [];

  constructor(sql: Sql) {
    this.#sql = sql;
  }

  /** Whether an invite was found, and rejected, that the hub has not issued. */
  get hasRejected(): boolean {
    return this.#hasRejected;
  }

  all(): Invite[] {
    this.#rejectedHashes = [];
    return this.#sql.all<InviteRow>('SELECT * FROM invites').flatMap((row) => {
      const invite = nullIfDamaged(() => readInvite(row, this.#sql.sealing));
      if (invite !== null) return [invite];
      this.#hasRejected = true;
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

  save({ hash, ...rest }: Invite): void {
    const content = this.#sql.sealing.seal(inviteRowIdentity({ hash }), JSON.stringify(rest));
    this.#sql.run('INSERT OR REPLACE INTO invites (hash, sealed) VALUES (?, ?)', hash, content);
  }

  /** @returns false if there is no such invite */
  remove(hash: string): boolean {
    return this.#sql.run('DELETE FROM invites WHERE hash = ?', hash);
  }
}
