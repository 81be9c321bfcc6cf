import type { Instant } from '../../../core/clock.ts';
import { type Doubt, type Grant, hasSameTokens } from '../../../core/grants/grant.ts';
import type { AttemptStart, FoundGrant, GrantSlot, GrantStore, LoginWrite, StoredGrant } from '../../../core/store.ts';
import { readGrant, toGrantRow } from '../../rows/grant-row.ts';
import { nullIfDamaged, unmarkMissing } from '../../rows/schemas.ts';
import type { Statements } from '../database/sql.ts';
import { GrantReconciliation } from './grant-reconciliation.ts';
import { KnownGrants } from './known-grants.ts';
import { type GrantsContext, LEASE_END_MARGIN, RefreshLeases } from './refresh-leases.ts';
import { COLUMNS, NO_ATTEMPT, type SiteGrantRow } from './site-grant-row.ts';

/** The grants of a site. */
export class SiteGrants implements GrantStore {
  readonly damaged = new Set<string>();
  readonly #context: GrantsContext;
  readonly #known = new KnownGrants();
  readonly #reconciliation: GrantReconciliation;
  readonly #leases: RefreshLeases;

  constructor(context: GrantsContext) {
    this.#context = context;
    this.#reconciliation = new GrantReconciliation(context, this.#known);
    this.#leases = new RefreshLeases(context, this.#known);
  }

  async all(): Promise<StoredGrant[]> {
    return [...(await this.find(null)).values()].map(({ stored }) => stored);
  }

  async get(connection: string): Promise<StoredGrant | null> {
    return (await this.find(new Set([connection]))).get(connection)?.stored ?? null;
  }

  async find(connections: ReadonlySet<string> | null): Promise<ReadonlyMap<string, FoundGrant>> {
    const { database } = this.#context;
    const query = `SELECT ${COLUMNS} FROM grants WHERE sealed IS NOT NULL AND ($1::text[] IS NULL OR connection = ANY ($1))`;
    const rows = await this.#known.revisions.read(
      connections,
      (ids) => database.read((sql) => sql.all<SiteGrantRow>(query, ids && [...ids])),
      (row) => row.connection,
    );
    const found = new Map<string, FoundGrant>();
    for (const row of rows) {
      const grant = await this.#read(row);
      if (grant !== null) found.set(row.connection, grant);
    }
    unmarkMissing(
      this.damaged,
      connections,
      rows.map(({ connection }) => connection),
    );
    return found;
  }

  /** What the database has of a grant. Nobody else changes that until the end of the transaction. */
  async slotIn(sql: Statements, connection: string): Promise<GrantSlot> {
    const { sealing, clocks } = this.#context;
    const row = await this.#lockedRow(sql, connection);
    const opened = row?.sealed == null ? null : nullIfDamaged(() => readGrant(row, sealing));
    const grant = opened === null ? null : (await clocks.translateRead(opened, sql)).grant;
    return { generation: row?.generation ?? 0, grant };
  }

  beginAttempt(...attempt: Parameters<GrantStore['beginAttempt']>): Promise<AttemptStart> {
    return this.#leases.begin(...attempt);
  }

  beginImport(...[connection, create, attempt]: Parameters<GrantStore['beginImport']>): Promise<AttemptStart> {
    return this.#leases.beginNew(connection, attempt, async (sql) => {
      const { generation, grant } = await this.slotIn(sql, connection);
      if (grant !== null) return null;
      const added = create(generation + 1);
      const revision = await this.replaceIn(sql, added);
      return revision === null ? null : { ...added, revision };
    });
  }

  endAttempt(grant: Parameters<GrantStore['endAttempt']>[0]): Promise<boolean> {
    return this.#leases.end(grant);
  }

  /** See {@link RefreshLeases.onReturning}. */
  onReturning(): Promise<void> {
    return this.#leases.onReturning();
  }

  /** A row that nobody has confirmed keeps its revision, so that it stays older than what another hub may put back. */
  async rejectAccessToken(connection: string, generation: number, at: Instant): Promise<boolean> {
    const revision = await this.#context.database.write([`grants/${connection}`], async (sql) => {
      const [row] = await sql.all<{ revision: number }>(
        `UPDATE grants SET distrusted = $1, revision = revision + confirmed::int
         WHERE connection = $2 AND generation = $3 AND sealed IS NOT NULL RETURNING revision`,
        ...[JSON.stringify(at), connection, generation],
      );
      return row?.revision ?? null;
    });
    // Another hub's write may lie between: then its revision must be read before anything is begun.
    if (revision !== null && revision === this.#known.revisions.get(connection) + 1) {
      this.#known.wrote(connection, { generation, revision });
    }
    return revision !== null;
  }

  async replace(grant: Grant): Promise<boolean> {
    const { connection, generation } = grant;
    const revision = await this.#context.database.write([`grants/${connection}`], (sql) =>
      this.replaceIn(sql, grant, this.#leases.openAttempt(connection, generation - 1)),
    );
    if (revision === null) return false;
    this.noteReplaced(grant, revision);
    return true;
  }

  /**
   * Replaces the previous generation of a grant in a transaction. If the database has the grant already, because the
   * outcome of an earlier write was unknown, nothing changes: another hub may use it by now.
   * @param attempt by which this hub got the tokens. If another hub has counted its answer as lost meanwhile, and sent the
   * refresh token again, or is about to, the doubt stays: the portal may have ended the tokens, or may end them
   * @returns the revision that this hub knows then; null if the store has another generation
   */
  async replaceIn(sql: Statements, grant: Grant, attempt: string | null = null): Promise<number | null> {
    const { sealing } = this.#context;
    const row = toGrantRow(grant, sealing);
    const { connection, generation, sealed, doubt, refused, distrusted, misconfigured } = row;
    const values = [connection, generation, sealed, doubt, refused, distrusted, misconfigured];
    const [replaced] = await sql.all<{ revision: number }>(
      `UPDATE grants SET generation = $2, sealed = $3, ${NO_ATTEMPT}, refused = $5, distrusted = $6,
         doubt = CASE WHEN attempt_id IS DISTINCT FROM coalesce($8, attempt_id)
             AND (attempt_id IS NOT NULL OR (doubt::json->>'sends')::int > 1)
           THEN doubt ELSE $4 END,
         misconfigured = $7, revision = revision + 1, confirmed = true
       WHERE connection = $1 AND generation = $2 - 1 RETURNING revision`,
      ...values,
      attempt,
    );
    if (replaced !== undefined) return replaced.revision;
    const found = await this.#lockedRow(sql, connection);
    if (found?.generation === generation && found.sealed !== null) {
      const stored = nullIfDamaged(() => readGrant(found, sealing));
      if (stored === null || !hasSameTokens(stored.grant, grant)) return null;
      // Otherwise somebody has written since then what this hub does not know yet.
      const known = this.#known.revisions.get(connection);
      return found.revision === known + 1 ? found.revision : known;
    }
    if (generation !== 1) return null;
    const [added] = await sql.all<{ revision: number }>(
      `INSERT INTO grants (connection, generation, sealed, doubt, refused, distrusted, misconfigured, revision)
       SELECT $1, $2, $3, $4, $5, $6, $7, 1 WHERE EXISTS (SELECT FROM connections WHERE id = $1)
       ON CONFLICT DO NOTHING RETURNING revision`,
      ...values,
    );
    return added?.revision ?? null;
  }

  /**
   * Replaces a grant in a transaction as `decide` says, see `Store.saveLogin`.
   * @returns what it has said, with the revision of its grant; null if that was nothing, or the connection was removed
   */
  async replaceAs(
    sql: Statements,
    connection: string,
    decide: (stored: GrantSlot) => LoginWrite | null,
  ): Promise<(LoginWrite & { readonly revision: number | null }) | null> {
    const slot = await this.slotIn(sql, connection);
    const end = decide(slot);
    if (end?.grant == null) return end && { ...end, revision: null };
    const revision = await this.replaceIn(sql, end.grant);
    if (revision !== null) return { ...end, revision };
    // A row that did not exist could not be locked: another hub may have added it since then.
    const isAdded = slot.generation === 0 && (await this.#lockedRow(sql, connection)) !== undefined;
    return isAdded ? this.replaceAs(sql, connection, decide) : null;
  }

  /** Call this when the transaction of {@link replaceIn} was committed. */
  noteReplaced({ connection, generation }: Grant, revision: number): void {
    this.#known.wroteWithoutAttempt(connection, { generation, revision });
  }

  reconcile(grants: readonly Grant[]): Promise<void> {
    return this.#reconciliation.reconcile(grants);
  }

  /** Deletes the tokens; the row keeps the next generation, so that no late response brings them back. */
  async forget(connection: string, generation?: number): Promise<GrantSlot> {
    let slot: GrantSlot = { generation: 0, grant: null };
    const revision = await this.#context.database.write([`grants/${connection}`], async (sql) => {
      slot = await this.slotIn(sql, connection);
      const [row] = await sql.all<{ revision: number }>(
        `UPDATE grants SET generation = generation + 1, sealed = NULL, ${NO_ATTEMPT}, doubt = NULL, refused = NULL, distrusted = NULL,
           misconfigured = NULL, revision = revision + 1, confirmed = true
         WHERE connection = $1 AND generation = $2 AND sealed IS NOT NULL RETURNING revision`,
        ...[connection, generation ?? slot.generation],
      );
      return row?.revision ?? null;
    });
    if (revision !== null) this.noteRemoved(connection);
    return slot;
  }

  /** Call this when the grant was deleted, or its connection removed. */
  noteRemoved(connection: string): void {
    this.damaged.delete(connection);
    this.#known.removed(connection);
  }

  async #lockedRow(sql: Statements, connection: string): Promise<SiteGrantRow | undefined> {
    const [row] = await sql.all<SiteGrantRow>(
      `SELECT ${COLUMNS} FROM grants WHERE connection = $1 FOR UPDATE`,
      connection,
    );
    return row;
  }

  async #read(row: SiteGrantRow): Promise<FoundGrant | null> {
    const { clocks, sealing, hubId } = this.#context;
    const { connection, holder } = row;
    const opened = nullIfDamaged(() => readGrant(row, sealing));
    if (opened === null) {
      this.damaged.add(connection);
      return null;
    }
    this.damaged.delete(connection);
    const hasLostWrites = this.#known.read(row, this.#leases.endOf(row));
    const { grant, attempt: stored } = await clocks.translateRead(opened);
    const attempt = this.#leases.isAbandoned(row.attempt_id) ? null : stored;
    const leasedUntil = holder === hubId || holder === null ? null : this.#leases.endOf(row) + LEASE_END_MARGIN;
    return {
      stored: {
        grant: row.confirmed ? grant : { ...grant, doubt: grant.doubt ?? this.#copyDoubt() },
        attempt: attempt === null || leasedUntil === null ? attempt : { ...attempt, leasedUntil },
      },
      hasLostWrites,
    };
  }

  /** The server was replaced by one that may have lost the last writes. */
  #copyDoubt(): Doubt {
    return { kind: 'copy', lostAt: { ...this.#context.clock.now(), boot: '' }, sends: 0 };
  }
}
