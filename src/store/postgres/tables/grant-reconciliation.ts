import { type Grant, isFromLaterLogin } from '../../../core/grants/grant.ts';
import { readGrant, toGrantRow } from '../../rows/grant-row.ts';
import { nullIfDamaged } from '../../rows/schemas.ts';
import type { Statements } from '../database/sql.ts';
import { IS_SETTLING } from '../link/site-state.ts';
import type { KnownGrants } from './known-grants.ts';
import type { GrantsContext } from './refresh-leases.ts';
import { COLUMNS, isOlder, type RowVersion, type SiteGrantRow } from './site-grant-row.ts';

/** A grant of which the database has an older version, or none. */
interface LostGrant {
  readonly grant: Grant;
  readonly compared: RowVersion;
}

const NO_ROW: RowVersion = { generation: 0, revision: 0 };

/** The row of a connection, which may not exist. */
interface FoundRow {
  readonly generation: number | null;
  readonly revision: number | null;
  readonly attempt_id: string | null;
  readonly doubt: string | null;
  readonly refused: string | null;
  readonly is_deleted: boolean;
  readonly settling: boolean;
}

/**
 * Grants after a switch to a server that may have lost commits. Each hub writes what it knows again, with the same
 * revision, unless it finds something newer: so the newest that any of them knows remains, in doubt.
 */
export class GrantReconciliation {
  readonly #context: Pick<GrantsContext, 'database' | 'sealing' | 'clocks'>;
  readonly #known: KnownGrants;

  constructor(context: Pick<GrantsContext, 'database' | 'sealing' | 'clocks'>, known: KnownGrants) {
    this.#context = context;
    this.#known = known;
  }

  /** See `GrantStore.reconcile`. */
  async reconcile(grants: readonly Grant[]): Promise<void> {
    for (const { grant, compared } of await this.#lostAmong(grants)) await this.#writeAgain(grant, compared);
  }

  /** Those that the database has an older version of, or none. A later login is accepted, whatever its version is. */
  async #lostAmong(grants: readonly Grant[]): Promise<LostGrant[]> {
    const rows = await this.#context.database.read((sql) =>
      sql.all<SiteGrantRow>(
        `SELECT ${COLUMNS} FROM grants WHERE connection = ANY ($1)`,
        grants.map(({ connection }) => connection),
      ),
    );
    const found = new Map(rows.map((row) => [row.connection, row]));
    const lost: LostGrant[] = [];
    for (const grant of grants) {
      const row = found.get(grant.connection);
      if (row !== undefined && !isOlder(row, this.#versionOf(grant))) continue;
      if (row === undefined || !(await this.#hasLaterLogin(row, grant))) lost.push({ grant, compared: row ?? NO_ROW });
      else this.#known.accept(grant.connection, { generation: row.generation, revision: row.revision });
    }
    return lost;
  }

  async #hasLaterLogin(row: SiteGrantRow, grant: Grant): Promise<boolean> {
    const { sealing, clocks } = this.#context;
    const opened = row.sealed === null ? null : nullIfDamaged(() => readGrant(row, sealing));
    return opened !== null && isFromLaterLogin((await clocks.translateRead(opened)).grant, grant);
  }

  /** @param compared what the database had when it was compared: what came since then is in the news */
  async #writeAgain(grant: Grant, compared: RowVersion): Promise<void> {
    const { connection, generation } = grant;
    const known = this.#versionOf(grant);
    const news = [`grants/${connection}`];
    const revision = await this.#context.database.write(news, async (sql) => {
      const [row] = await sql.all<FoundRow>(
        `SELECT generation, grants.revision, attempt_id, doubt, refused, ${IS_SETTLING} AS settling,
           generation IS NOT NULL AND grants.sealed IS NULL AS is_deleted
         FROM connections LEFT JOIN grants ON connection = id WHERE id = $1 FOR NO KEY UPDATE OF connections`,
        connection,
      );
      if (row === undefined) return null;
      const found = { generation: row.generation ?? 0, revision: row.revision ?? 0 };
      if (found.generation !== compared.generation || found.revision !== compared.revision) return null;
      // A hub that knows less may have put back an older generation before, with any revision.
      if (found.generation > generation || !isOlder(found, known)) return null;
      // The grant before it was deleted.
      if (row.is_deleted && found.generation === generation) return null;
      // While the switch settles, all that the database has is from before it.
      const mayBeUsed = !row.settling && found.generation === generation;
      // Somebody may have sent the refresh token since then: what the store says of that stays.
      if (mayBeUsed && (row.attempt_id ?? row.doubt ?? row.refused) !== null) {
        this.#known.accept(connection, found);
        return null;
      }
      return (await this.#overwrite(sql, grant, found, known.revision)) ? known.revision : null;
    });
    if (revision !== null) this.#known.wrote(connection, { generation, revision });
  }

  /**
   * Writes a grant and its open attempt.
   * @param found what the database has
   * @returns false if another hub has just written the grant, so that there will be news of it
   */
  async #overwrite(sql: Statements, grant: Grant, found: RowVersion, revision: number): Promise<boolean> {
    const { connection, generation } = grant;
    const { sealed, doubt, refused, distrusted, misconfigured } = toGrantRow(grant, this.#context.sealing);
    const last = this.#known.attempt(connection);
    const attempt = last?.generation === generation ? last : null;
    const count = await sql.run(
      `INSERT INTO grants (connection, generation, sealed, doubt, refused, distrusted, misconfigured, revision, confirmed,
         attempt, attempt_id, holder, leased_until)
       VALUES ($1, $2, $3, $4, $5, $6, $7, $8, false, $9, $10, $11, to_timestamp($12::float8 / 1000))
       ON CONFLICT (connection) DO UPDATE SET generation = $2, sealed = $3, doubt = $4, refused = $5,
         distrusted = coalesce($6, CASE WHEN grants.generation = $2 THEN grants.distrusted END), misconfigured = $7,
         revision = $8, confirmed = false, attempt = $9, attempt_id = $10, holder = $11, leased_until = excluded.leased_until
       WHERE grants.generation = $13 AND grants.revision = $14`,
      ...[connection, generation, sealed, doubt, refused, distrusted, misconfigured, revision],
      ...[
        attempt?.attempt ?? null,
        attempt?.attempt_id ?? null,
        attempt?.holder ?? null,
        attempt?.leased_until ?? null,
      ],
      ...[found.generation, found.revision],
    );
    return count > 0;
  }

  /** The version in which this hub holds a grant. New tokens that it could not write yet are a version of their own. */
  #versionOf({ connection, generation }: Grant): RowVersion {
    const newest = this.#known.newest(connection);
    return { generation, revision: newest.revision + (generation > newest.generation ? 1 : 0) };
  }
}
