import type { Invite } from '../../../core/appliances/registration.ts';
import type { InviteStore } from '../../../core/store.ts';
import type { Sealing } from '../../keys/sealing.ts';
import { type InviteRow, readInvite, toInviteRow } from '../../rows/registry-rows.ts';
import { nullIfDamaged } from '../../rows/schemas.ts';
import type { SiteDatabase } from '../database/database.ts';
import type { SiteClocks } from '../link/clocks.ts';

export const REMOVE_INVITE = 'DELETE FROM invites WHERE hash = $1';

/** The invites of a site. */
export class SiteInvites implements InviteStore {
  readonly rejected = new Set<string>();
  readonly #database: SiteDatabase;
  readonly #sealing: Sealing;
  readonly #clocks: SiteClocks;

  constructor(database: SiteDatabase, sealing: Sealing, clocks: SiteClocks) {
    this.#database = database;
    this.#sealing = sealing;
    this.#clocks = clocks;
  }

  async all(): Promise<Invite[]> {
    const rows = await this.#database.read((sql) =>
      sql.all<InviteRow>('SELECT hash, sealed FROM invites ORDER BY hash'),
    );
    return this.#clocks.translateRead(
      rows.flatMap((row) => {
        const invite = nullIfDamaged(() => readInvite(row, this.#sealing));
        if (invite === null) this.rejected.add(row.hash);
        return invite ?? [];
      }),
    );
  }

  async save(invite: Invite): Promise<void> {
    const { hash, sealed } = toInviteRow(invite, this.#sealing);
    await this.#database.write(['invites'], async (sql) => {
      await sql.run(
        'INSERT INTO invites (hash, sealed) VALUES ($1, $2) ON CONFLICT (hash) DO UPDATE SET sealed = excluded.sealed',
        ...[hash, sealed],
      );
      return true;
    });
  }

  async remove(hash: string): Promise<void> {
    await this.#database.write(['invites'], async (sql) => (await sql.run(REMOVE_INVITE, hash)) > 0 || null);
  }
}
