import type { Pairing } from '../../../core/pairings/pairing.ts';
import type { PairingStore } from '../../../core/store.ts';
import type { Sealing } from '../../keys/sealing.ts';
import { MAX_ENDED_PAIRINGS, type PairingRow, readPairing, toPairingRow } from '../../rows/pairing-row.ts';
import { nullIfDamaged } from '../../rows/schemas.ts';
import type { SiteDatabase } from '../database/database.ts';
import type { Statements } from '../database/sql.ts';
import type { SiteClocks } from '../link/clocks.ts';
import { hasEnded, WORK_LEASE } from '../link/site-state.ts';
import { KnownRevisions } from './revisions.ts';

interface SitePairingRow extends PairingRow {
  readonly revision: number;
}

const COLUMNS = 'number, id, connection, step, sealed, revision';
/** Until when a hub owns what it takes now. */
const OWNED_UNTIL = `clock_timestamp() + ${WORK_LEASE} * interval '1 ms'`;

/** The pairings of a site: each is run by one hub, its owner. */
export class SitePairings implements PairingStore {
  readonly #database: SiteDatabase;
  readonly #sealing: Sealing;
  readonly #clocks: SiteClocks;
  readonly #hubId: string;
  readonly #revisions = new KnownRevisions();

  constructor(database: SiteDatabase, sealing: Sealing, clocks: SiteClocks, hubId: string) {
    this.#database = database;
    this.#sealing = sealing;
    this.#clocks = clocks;
    this.#hubId = hubId;
  }

  async all(ids?: ReadonlySet<string>): Promise<Pairing[]> {
    const query = `SELECT ${COLUMNS} FROM pairings WHERE $1::text[] IS NULL OR id = ANY ($1) ORDER BY number`;
    const rows = await this.#revisions.read(
      ids ?? null,
      (wanted) => this.#database.read((sql) => sql.all<SitePairingRow>(query, wanted && [...wanted])),
      ({ id }) => id,
    );
    return this.#clocks.translateRead(rows.flatMap((row) => this.#open(row) ?? []));
  }

  async save(pairing: Pairing): Promise<boolean> {
    const news = [`pairings/${pairing.id}`];
    const saved = await this.#database.write(news, (sql) => this.saveIn(sql, pairing, news));
    if (saved === null) return false;
    this.noteSaved(pairing.id, saved);
    return true;
  }

  /**
   * Saves a pairing in a transaction, and becomes its owner if it is a new one.
   * @param news of the transaction, to which those of the pairings are added that are no longer kept
   * @returns its revision, 0 if its connection was removed; null if another hub has changed it
   */
  async saveIn(sql: Statements, pairing: Pairing, news: string[]): Promise<number | null> {
    const { id, connection, step, sealed } = toPairingRow(pairing, this.#sealing);
    const [row] = !this.#revisions.has(id)
      ? await sql.all<{ revision: number }>(
          `INSERT INTO pairings (id, connection, step, sealed, owner, owned_until)
             SELECT $1, id, $3, $4, $5, ${OWNED_UNTIL} FROM connections WHERE id = $2
             ON CONFLICT DO NOTHING RETURNING revision`,
          ...[id, connection, step, sealed, this.#hubId],
        )
      : await sql.all<{ revision: number }>(
          `UPDATE pairings SET step = $2, sealed = $3, revision = revision + 1, owned_until = ${OWNED_UNTIL}
             WHERE id = $1 AND revision = $4 AND owner = $5 RETURNING revision`,
          ...[id, step, sealed, this.#revisions.get(id), this.#hubId],
        );
    if (row === undefined) {
      const [found] = await sql.all('SELECT FROM connections WHERE id = $1', connection);
      return found === undefined ? 0 : null;
    }
    const dropped = await sql.all<{ id: string }>(
      `DELETE FROM pairings WHERE connection = $1 AND step = 'ended' AND number <=
         (SELECT number FROM pairings WHERE connection = $1 ORDER BY number DESC LIMIT 1 OFFSET ${MAX_ENDED_PAIRINGS})
       RETURNING id`,
      connection,
    );
    for (const { id: droppedId } of dropped) this.#revisions.removed(droppedId);
    news.push(...dropped.map((one) => `pairings/${one.id}`));
    return row.revision;
  }

  /**
   * Ends a pairing in a transaction, whatever other hubs have done with it, and becomes its owner.
   * @returns its revision; 0 if it has ended already, or no longer exists
   */
  async endIn(sql: Statements, pairing: Pairing): Promise<number> {
    const { id, step, sealed } = toPairingRow(pairing, this.#sealing);
    const [row] = await sql.all<{ revision: number }>(
      `UPDATE pairings SET step = $2, sealed = $3, revision = revision + 1, owner = $4, owned_until = ${OWNED_UNTIL}
       WHERE id = $1 AND step <> 'ended' RETURNING revision`,
      ...[id, step, sealed, this.#hubId],
    );
    return row?.revision ?? 0;
  }

  /** Call this when the transaction of {@link saveIn} was committed. */
  noteSaved(id: string, revision: number): void {
    if (revision > 0) this.#revisions.wrote(id, revision);
  }

  async take(id: string, urgent: boolean): Promise<Pairing | null> {
    const [row] =
      (await this.#database.write([`pairings/${id}`], async (sql) => {
        const rows = await sql.all<SitePairingRow>(
          `UPDATE pairings SET owner = $2, owned_until = ${OWNED_UNTIL}, revision = revision + 1
           WHERE id = $1 AND (owner = $2 OR ${hasEnded('owned_until', WORK_LEASE)} OR ($3 AND step <> 'exchanging'))
           RETURNING ${COLUMNS}`,
          ...[id, this.#hubId, urgent],
        );
        return rows.length === 0 ? null : rows;
      })) ?? [];
    if (row === undefined) return null;
    this.#revisions.wrote(id, row.revision);
    return this.#clocks.translateRead(this.#open(row));
  }

  async keep(ids: readonly string[]): Promise<readonly string[]> {
    const kept = await this.#database.writeIdempotently((sql) =>
      sql.all<{ id: string }>(
        `UPDATE pairings SET owned_until = ${OWNED_UNTIL} WHERE id = ANY ($1) AND owner = $2 RETURNING id`,
        ...[ids, this.#hubId],
      ),
    );
    const keptIds = new Set(kept.map(({ id }) => id));
    return ids.filter((id) => !keptIds.has(id));
  }

  #open({ revision: _, ...row }: SitePairingRow): Pairing | null {
    return nullIfDamaged(() => readPairing(row, this.#sealing));
  }
}
