import type { Clock, Instant } from '../../../core/clock.ts';
import { Failure } from '../../../core/failure.ts';
import type { Doubt, Grant } from '../../../core/grants/grant.ts';
import type { FoundGrant } from '../../../core/site.ts';
import type { AttemptStart, RefreshAttempt, Store, StoredGrant } from '../../../core/store.ts';
import type { Sealing } from '../../keys/sealing.ts';
import { readGrant, toGrantRow } from '../../rows/grant-row.ts';
import { jsonOrNull, nullIfDamaged } from '../../rows/schemas.ts';
import type { SiteDatabase } from '../connection/database.ts';
import type { Statements } from '../connection/sql.ts';
import type { SiteClocks } from '../link/clocks.ts';
import { hasEnded, REFRESH_LEASE, SEND_TIME } from '../link/lease-times.ts';
import { IS_SETTLING, SETTLES_AT, SETTLING_TIME } from '../link/settling.ts';
import { SERVER } from '../link/site-state.ts';
import { KnownGrants } from './known-grants.ts';
import { LostGrants } from './lost-grants.ts';
import { COLUMNS, LEASED_UNTIL, NO_ATTEMPT, type RowVersion, type SiteGrantRow } from './site-grant-row.ts';

/** What {@link SiteGrants} works with. */
export interface GrantsContext {
  readonly database: SiteDatabase;
  readonly sealing: Sealing;
  readonly clocks: SiteClocks;
  readonly clock: Clock;
  readonly hubId: string;
}

/** How late a hub takes a lease to end, in ms: it does not know the database's clock exactly. */
const LEASE_END_MARGIN = 1000;
/**
 * The grants of a site. An attempt is a lease: no other hub may begin one while it is open, and what ends it names it.
 */
export class SiteGrants {
  readonly #context: GrantsContext;
  readonly #damaged = new Set<string>();
  readonly #known = new KnownGrants();
  readonly #lost: LostGrants;
  /** Ids of writes of new tokens whose outcome is unknown, by connection. */
  readonly #unknownWrites = new Map<string, string[]>();
  /** The connections of attempts that were not sent, and that the database may have, by the ids of the attempts. */
  readonly #abandoned = new Map<string, string>();

  constructor(context: GrantsContext) {
    this.#context = context;
    this.#lost = new LostGrants(context, this.#known);
  }

  get damaged(): ReadonlySet<string> {
    return this.#damaged;
  }

  async all(): Promise<StoredGrant[]> {
    return [...(await this.findMany(null)).values()].map(({ stored }) => stored);
  }

  async find(connection: string): Promise<StoredGrant | null> {
    return (await this.findMany(new Set([connection]))).get(connection)?.stored ?? null;
  }

  /** Those that exist, by connection. @param connections null for all */
  async findMany(connections: ReadonlySet<string> | null): Promise<ReadonlyMap<string, FoundGrant>> {
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
    return found;
  }

  async generation(connection: string): Promise<number> {
    const [row] = await this.#context.database.read((sql) =>
      sql.all<{ generation: number }>('SELECT generation FROM grants WHERE connection = $1', connection),
    );
    return row?.generation ?? 0;
  }

  async beginAttempt(
    { connection, generation, doubt }: Parameters<Store['beginAttempt']>[0],
    { token, at }: RefreshAttempt,
  ): Promise<AttemptStart> {
    const { database, clock, hubId } = this.#context;
    const stored = JSON.stringify({ token, at });
    // What is read from now on, the caller does not know yet.
    const known = this.#known.revisions.get(connection);
    let attemptId = '';
    let sendBefore = 0;
    // If this throws, nothing is sent; the database may have the attempt, which is removed when it can be used again.
    const begun = await database.write([`grants/${connection}`], async (sql, id) => {
      attemptId = id;
      this.#abandoned.set(id, connection);
      sendBefore = clock.now().uptime + SEND_TIME;
      const [row] = await sql.all<{ revision: number; leased_until: number }>(
        `UPDATE grants SET attempt = $1, attempt_id = $2, holder = $3, doubt = $4, revision = revision + 1,
           leased_until = clock_timestamp() + $5::float8 * interval '1 ms'
         WHERE connection = $6 AND generation = $7 AND sealed IS NOT NULL AND revision = $8
           AND (attempt IS NULL OR holder = $3) AND (vouched AND doubt IS NULL OR $4::text IS NOT NULL)
           AND (vouched OR NOT ${IS_SETTLING}) AND (SELECT server FROM site) = ${SERVER}
         RETURNING revision, ${LEASED_UNTIL}`,
        ...[stored, id, hubId, jsonOrNull(doubt), REFRESH_LEASE],
        ...[connection, generation, known],
      );
      return row ?? null;
    });
    this.#abandoned.delete(attemptId);
    if (begun !== null) {
      const { revision, leased_until: leasedUntil } = begun;
      const attempt = { generation, id: attemptId, holder: hubId, attempt: stored, leasedUntil };
      const endsAt = sendBefore - SEND_TIME + REFRESH_LEASE;
      this.#known.began(connection, { generation, revision }, { ...attempt, endsAt });
      return { kind: 'begun', sendBefore };
    }
    return this.#whyNotBegun(connection, { generation, revision: known });
  }

  /** @param known the version that the caller knows */
  async #whyNotBegun(connection: string, known: RowVersion): Promise<AttemptStart> {
    const { database, hubId, clock, clocks } = this.#context;
    const [row] = await database.read((sql) =>
      sql.all<SiteGrantRow & { readonly settles_at: number | null; readonly is_other_server: boolean }>(
        `SELECT ${COLUMNS}, ${SETTLES_AT} AS settles_at, (SELECT server FROM site) <> ${SERVER} AS is_other_server
         FROM grants WHERE connection = $1`,
        connection,
      ),
    );
    if (row?.is_other_server === true) {
      // A connection of the pool has reached it before this hub has noticed that the former one is gone.
      const failure = new Failure('store_unwritable', `the server of the site's ${database.description} was replaced`);
      database.reportOutage(failure);
      throw failure;
    }
    if (row?.generation !== known.generation || row.revision !== known.revision) return { kind: 'superseded' };
    const isLeased = row.holder !== null && row.holder !== hubId;
    const settlesAt = row.vouched ? null : row.settles_at;
    if (!isLeased && settlesAt === null) return { kind: 'superseded' };
    const settled = Math.min(clocks.toUptime(settlesAt ?? 0), clock.now().uptime + SETTLING_TIME) + LEASE_END_MARGIN;
    return { kind: 'under_way', until: isLeased ? Math.max(this.#endOfLease(row), settled) : settled };
  }

  /** Ends this hub's attempt, or another hub's whose lease has ended, as {@link all} or {@link findMany} has read it. */
  async endAttempt(grant: Parameters<Store['endAttempt']>[0]): Promise<boolean> {
    const { connection, generation, doubt, refused, misconfigured } = grant;
    const attempt = this.#known.attempt(connection)?.id ?? null;
    const known = this.#known.revisions.get(connection);
    const revision = await this.#context.database.write([`grants/${connection}`], async (sql) => {
      const [row] = await sql.all<{ revision: number }>(
        `UPDATE grants SET ${NO_ATTEMPT}, doubt = $1, refused = $2, misconfigured = $3, revision = revision + 1
         WHERE connection = $4 AND generation = $5 AND sealed IS NOT NULL
           AND CASE WHEN attempt IS NULL THEN revision = $6 ELSE attempt_id = $7 END
           AND (holder IS NULL OR holder = $8 OR ${hasEnded('leased_until', REFRESH_LEASE)})
         RETURNING revision`,
        ...[jsonOrNull(doubt), jsonOrNull(refused), jsonOrNull(misconfigured), connection, generation],
        ...[known, attempt, this.#context.hubId],
      );
      return row?.revision ?? null;
    });
    if (revision === null) return false;
    this.#known.wroteWithoutAttempt(connection, { generation, revision });
    return true;
  }

  /** A row that nobody vouches for keeps its revision, so that it stays older than what another hub may put back. */
  async rejectAccessToken(connection: string, generation: number, at: Instant): Promise<boolean> {
    const revision = await this.#context.database.write([`grants/${connection}`], async (sql) => {
      const [row] = await sql.all<{ revision: number }>(
        `UPDATE grants SET distrusted = $1, revision = revision + vouched::int
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
    const { connection } = grant;
    let written = '';
    try {
      const revision = await this.#context.database.write([`grants/${connection}`], (sql, id) => {
        written = id;
        return this.replaceIn(sql, id, grant);
      });
      if (revision === null) return false;
      this.noteReplaced(grant, revision);
      return true;
    } catch (error) {
      this.noteUnknown(connection, written);
      throw error;
    }
  }

  /**
   * Replaces the previous generation of a grant in a transaction. If an earlier write of the same, whose outcome was
   * unknown, was committed, nothing changes: another hub may already use what it has written.
   * @param id of the transaction
   * @returns the revision that this hub knows then; null if the store has another generation
   */
  async replaceIn(sql: Statements, id: string, grant: Grant): Promise<number | null> {
    const row = toGrantRow(grant, this.#context.sealing);
    const { connection, generation, sealed, doubt, refused, distrusted, misconfigured } = row;
    const values = [connection, generation, sealed, doubt, refused, distrusted, misconfigured, id];
    const known = this.#known.revisions.get(connection);
    const unknownWrites = this.#unknownWrites.get(connection) ?? [];
    const [replaced] = await sql.all<{ revision: number }>(
      `UPDATE grants SET generation = $2, sealed = $3, ${NO_ATTEMPT}, doubt = $4, refused = $5, distrusted = $6,
         misconfigured = $7, revision = revision + 1, written_by = $8, vouched = true
       WHERE connection = $1 AND generation = $2 - 1 RETURNING revision`,
      ...values,
    );
    if (replaced !== undefined) return replaced.revision;
    if (unknownWrites.length > 0) {
      const [written] = await sql.all<{ revision: number }>(
        'SELECT revision FROM grants WHERE connection = $1 AND generation = $2 AND written_by = ANY ($3::uuid[])',
        ...[connection, generation, unknownWrites],
      );
      // Otherwise somebody has written since then what this hub does not know yet.
      if (written !== undefined) return written.revision === known + 1 ? written.revision : known;
    }
    if (generation !== 1) return null;
    const [added] = await sql.all<{ revision: number }>(
      `INSERT INTO grants (connection, generation, sealed, doubt, refused, distrusted, misconfigured, revision, written_by)
       SELECT $1, $2, $3, $4, $5, $6, $7, 1, $8 WHERE EXISTS (SELECT FROM connections WHERE id = $1)
       ON CONFLICT DO NOTHING RETURNING revision`,
      ...values,
    );
    return added?.revision ?? null;
  }

  /** Call this when the transaction of {@link replaceIn} was committed. */
  noteReplaced({ connection, generation }: Grant, revision: number): void {
    this.#unknownWrites.delete(connection);
    this.#known.wroteWithoutAttempt(connection, { generation, revision });
  }

  /** Call this when it is unknown whether it was. @param id of the transaction; empty if there was none */
  noteUnknown(connection: string, id: string): void {
    if (id === '') return;
    this.#unknownWrites.set(connection, [...(this.#unknownWrites.get(connection) ?? []), id]);
  }

  /** See `SiteStore.putBack`. */
  putBack(grants: readonly Grant[]): Promise<void> {
    return this.#lost.putBack(grants);
  }

  /**
   * Deletes the tokens of a grant; its row keeps the next generation, so that no late response brings it back.
   * @returns the revision of the row; null if the store has another generation
   */
  async clearIn(sql: Statements, id: string, connection: string, generation: number): Promise<number | null> {
    const [row] = await sql.all<{ revision: number }>(
      `UPDATE grants SET generation = generation + 1, sealed = NULL, ${NO_ATTEMPT}, doubt = NULL, refused = NULL, distrusted = NULL,
         misconfigured = NULL, revision = revision + 1, written_by = $3, vouched = true
       WHERE connection = $1 AND generation = $2 AND sealed IS NOT NULL RETURNING revision`,
      ...[connection, generation, id],
    );
    return row?.revision ?? null;
  }

  /** Call this when the transaction of {@link clearIn} was committed. */
  noteCleared(connection: string, revision: number): void {
    this.#damaged.delete(connection);
    this.#known.cleared(connection, revision);
  }

  /** Removes this hub's attempts that were not sent, after it was unknown whether the database has them. */
  async removeAbandoned(): Promise<void> {
    const abandoned = new Map(this.#abandoned);
    if (abandoned.size === 0) return;
    const ids = [...abandoned.keys()];
    const news = [...abandoned.values()].map((connection) => `grants/${connection}`);
    const { database } = this.#context;
    await database.write(news, async (sql) => {
      await database.fence(sql, ids);
      await sql.run(`UPDATE grants SET ${NO_ATTEMPT}, revision = revision + 1 WHERE attempt_id = ANY ($1)`, ids);
      return true;
    });
    for (const id of ids) this.#abandoned.delete(id);
  }

  async #read(row: SiteGrantRow): Promise<FoundGrant | null> {
    const { clocks, sealing, hubId } = this.#context;
    const { connection, holder } = row;
    const opened = nullIfDamaged(() => readGrant(row, sealing));
    if (opened === null) {
      this.#damaged.add(connection);
      return null;
    }
    this.#damaged.delete(connection);
    const hasLostWrites = this.#known.read(row, this.#endOfLease(row) - LEASE_END_MARGIN);
    const { grant, attempt } = await clocks.translateRead(opened);
    const leasedUntil = holder === hubId || holder === null ? null : this.#endOfLease(row);
    return {
      stored: {
        grant: row.vouched ? grant : { ...grant, doubt: grant.doubt ?? this.#copyDoubt() },
        attempt: attempt === null || leasedUntil === null ? attempt : { ...attempt, leasedUntil },
      },
      hasLostWrites,
    };
  }

  /**
   * When this hub takes the lease of an open attempt to end, on its boot clock in ms: as it was when this hub first saw
   * the attempt, and no later than a whole lease after that, whatever happens to the database's clock.
   */
  #endOfLease({ connection, attempt_id: id, leased_until: leasedUntil }: SiteGrantRow): number {
    const { clock, clocks } = this.#context;
    const known = this.#known.attempt(connection);
    if (known?.id === id) return known.endsAt + LEASE_END_MARGIN;
    return Math.min(clocks.toUptime(leasedUntil ?? 0), clock.now().uptime + REFRESH_LEASE) + LEASE_END_MARGIN;
  }

  /** The server was replaced by one that may have lost the last writes. */
  #copyDoubt(): Doubt {
    return { kind: 'copy', lostAt: { ...this.#context.clock.now(), boot: '' }, sends: 0 };
  }
}
