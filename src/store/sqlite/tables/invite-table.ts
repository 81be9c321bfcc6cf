import type { Invite } from '../../../core/appliances/registration.ts';
import { type InviteRow, readInvite, toInviteRow } from '../../rows/invite-row.ts';
import { nullIfDamaged } from '../../rows/schemas.ts';
import type { Sql } from '../sql.ts';

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

  save(invite: Invite): void {
    const { hash, sealed } = toInviteRow(invite, this.#sql.sealing);
    this.#sql.run('INSERT OR REPLACE INTO invites (hash, sealed) VALUES (?, ?)', hash, sealed);
  }

  /** @returns false if there is no such invite */
  remove(hash: string): boolean {
    return this.#sql.run('DELETE FROM invites WHERE hash = ?', hash);
  }
}
