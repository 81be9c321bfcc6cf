import type { Clock, Instant } from '../../../core/clock.ts';
import type { Doubt, Grant } from '../../../core/grants/grant.ts';
import type { FoundGrant } from '../../../core/site.ts';
import type { AttemptStart, RefreshAttempt, Store, StoredGrant } from '../../../core/store.ts';
import type { Sealing } from '../../keys/sealing.ts';
import { type GrantRow, readGrant, toGrantRow } from '../../rows/grant-row.ts';
import { jsonOrNull, nullIfDamaged } from '../../rows/schemas.ts';
import type { SiteDatabase } from '../connection/database.ts';
import type { Statements } from '../connection/sql.ts';
import type { SiteClocks } from '../link/clocks.ts';
import { hasEnded, REFRESH_LEASE, SEND_TIME } from '../link/lease-times.ts';
import { KnownRevisions } from './revisions.ts';

/** What {@link SiteGrants} works with. */
export interface GrantsContext {
  readonly database: SiteDatabase;
  readonly sealing: Sealing;
  readonly clocks: SiteClocks;
  readonly clock: Clock;
  readonly hubId: string;
}

/** A row of `grants`; `leased_until` in ms since 1970, by the database's clock. */
interface SiteGrantRow extends GrantRow {
  readonly attempt_id: string | null;
  readonly holder: string | null;
  readonly leased_until: number | null;
  readonly revision: number;
  readonly vouched: boolean;
}

/** An open attempt as it is stored. */
interface OpenAttempt {
  /** Of the grant. */
  readonly generation: number;
  readonly id: string;
  readonly holder: string;
  /** The column `attempt`. */
  readonly attempt: string;
  /** When its lease ends, in ms since 1970 by the database's clock. */
  readonly leasedUntil: number;
  /** The same on this hub's boot clock, as it was when this hub first saw the attempt: the database's clock may be set. */
  readonly endsAt: number;
}

/** What tells whether a row is older than what a hub knows. */
type KnownState = Pick<SiteGrantRow, 'generation' | 'revision'>;

type Nullable<Row> = { readonly [Name in keyof Row]: Row[Name] | null };

const NOTHING_KNOWN: KnownState = { generation: 0, revision: 0 };

const LEASED_UNTIL = '(extract(epoch FROM leased_until) * 1000)::float8 AS leased_until';
const COLUMNS = `connection, generation, sealed, attempt, attempt_id, holder,
  ${LEASED_UNTIL}, doubt, refused, distrusted, misconfigured, revision, vouched`;
/** How late a hub takes a lease to end, in ms: it does not know the database's clock exactly. */
const LEASE_END_MARGIN = 1000;
/** How many grants are vouched for in one transaction. */
const MAX_CONFIRMED = 1000;
/** The open attempt of a row ends, or a new grant has none. */
const NO_ATTEMPT = 'attempt = NULL, attempt_id = NULL, holder = NULL, leased_until = NULL';

/**
 * The grants of a site. An attempt is a lease: no other hub may begin one while it is open, and what ends it names it.
 */
export class SiteGrants {
  readonly #context: GrantsContext;
  readonly #damaged = new Set<string>();
  readonly #revisions = new KnownRevisions();
  /** The newest state of each grant that no replaced server has lost as far as this hub knows. */
  readonly #vouched = new Map<string, KnownState>();
  /** The open attempts of all hubs by connection, as this hub has read or written them last. */
  readonly #attempts = new Map<string, OpenAttempt>();
  /** Ids of writes of new tokens whose outcome is unknown, by connection. */
  readonly #unknownWrites = new Map<string, string[]>();
  /** The connections of attempts that were not sent, and that the database may have, by the ids of the attempts. */
  readonly #abandoned = new Map<string, string>();

  constructor(context: GrantsContext) {
    this.#context = context;
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
    const rows = await this.#revisions.read(
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
    const known = this.#revisions.get(connection);
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
      this.#attempts.set(connection, { ...attempt, endsAt: sendBefore - SEND_TIME + REFRESH_LEASE });
      this.#wrote({ connection, generation, revision });
      return { kind: 'begun', sendBefore };
    }
    const [row] = await database.read((sql) =>
      sql.all<SiteGrantRow>(`SELECT ${COLUMNS} FROM grants WHERE connection = $1`, connection),
    );
    const isUnderWay = row?.generation === generation && row.holder !== null && row.holder !== hubId;
    if (!isUnderWay || row?.revision !== known) return { kind: 'superseded' };
    return { kind: 'under_way', until: this.#endOfLease(row) };
  }

  /** Ends this hub's attempt, or another hub's whose lease has ended, as {@link all} or {@link findMany} has read it. */
  async endAttempt(grant: Parameters<Store['endAttempt']>[0]): Promise<boolean> {
    const { connection, generation, doubt, refused, misconfigured } = grant;
    const attempt = this.#attempts.get(connection)?.id ?? null;
    const known = this.#revisions.get(connection);
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
    this.#attempts.delete(connection);
    this.#wrote({ connection, generation, revision });
    return true;
  }

  async rejectAccessToken(connection: string, generation: number, at: Instant): Promise<boolean> {
    const revision = await this.#context.database.write([`grants/${connection}`], async (sql) => {
      const [row] = await sql.all<{ revision: number }>(
        `UPDATE grants SET distrusted = $1, revision = revision + 1
         WHERE connection = $2 AND generation = $3 AND sealed IS NOT NULL RETURNING revision`,
        ...[JSON.stringify(at), connection, generation],
      );
      return row?.revision ?? null;
    });
    // Another hub's write may lie between: then its revision must be read before anything is begun.
    if (revision !== null && revision === this.#revisions.get(connection) + 1) {
      this.#wrote({ connection, generation, revision });
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
    const known = this.#revisions.get(connection);
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
    this.#attempts.delete(connection);
    this.#wrote({ connection, generation, revision });
  }

  /** Call this when it is unknown whether it was. @param id of the transaction; empty if there was none */
  noteUnknown(connection: string, id: string): void {
    if (id === '') return;
    this.#unknownWrites.set(connection, [...(this.#unknownWrites.get(connection) ?? []), id]);
  }

  /**
   * Writes a grant, whatever the store has.
   * @param id of the transaction
   * @param attempt of this grant, which is open; null if there is none
   */
  async overwriteIn(sql: Statements, id: string, grant: Grant, attempt: OpenAttempt | null = null): Promise<void> {
    const { sealed, doubt, refused, distrusted, misconfigured } = toGrantRow(grant, this.#context.sealing);
    await sql.run(
      `INSERT INTO grants (connection, generation, sealed, doubt, refused, distrusted, misconfigured, written_by, revision,
         attempt, attempt_id, holder, leased_until)
       VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, to_timestamp($13::float8 / 1000))
       ON CONFLICT (connection) DO UPDATE SET generation = $2, sealed = $3, doubt = $4, refused = $5, distrusted = $6,
         misconfigured = $7, written_by = $8, revision = greatest(grants.revision + 1, $9), vouched = true,
         attempt = $10, attempt_id = $11, holder = $12, leased_until = excluded.leased_until`,
      ...[grant.connection, grant.generation, sealed, doubt, refused, distrusted, misconfigured, id],
      (this.#vouched.get(grant.connection)?.revision ?? 0) + 1,
      ...[attempt?.attempt ?? null, attempt?.id ?? null, attempt?.holder ?? null, attempt?.leasedUntil ?? null],
    );
  }

  /**
   * Writes what this hub knows of grants again after the database has lost it, and their open attempts: another hub may
   * still get an answer. What the database has not lost stays.
   * @param grants as this hub holds them
   */
  async putBack(grants: readonly Grant[]): Promise<void> {
    for (let from = 0; from < grants.length; from += MAX_CONFIRMED) {
      await this.#confirm(grants.slice(from, from + MAX_CONFIRMED).map(({ connection }) => connection));
    }
    for (const grant of grants) await this.#putBackOne(grant);
  }

  /** Vouches for grants of which the database has lost nothing. */
  async #confirm(connections: readonly string[]): Promise<void> {
    const revisions = connections.map((connection) => this.#vouched.get(connection)?.revision ?? 0);
    const news = connections.map((connection) => `grants/${connection}`);
    await this.#context.database.write(news, async (sql) => {
      const count = await sql.run(
        `UPDATE grants SET vouched = true FROM unnest($1::text[], $2::bigint[]) AS known (id, revision)
         WHERE connection = known.id AND grants.revision = known.revision AND NOT vouched`,
        ...[connections, revisions],
      );
      return count > 0 || null;
    });
  }

  async #putBackOne(grant: Grant): Promise<void> {
    const { connection, generation } = grant;
    const known = { generation, revision: this.#vouched.get(connection)?.revision ?? 0 };
    const revision = await this.#context.database.write([`grants/${connection}`], async (sql, id) => {
      const [row] = await sql.all<Nullable<KnownState & Pick<SiteGrantRow, 'attempt_id' | 'doubt'>>>(
        `SELECT generation, grants.revision, attempt_id, doubt FROM connections LEFT JOIN grants ON connection = id
         WHERE id = $1 FOR NO KEY UPDATE OF connections`,
        connection,
      );
      if (row === undefined) return null;
      const found = { generation: row.generation ?? 0, revision: row.revision ?? 0 };
      // A hub that knows less may have put back an older generation before, with any revision.
      if (found.generation > generation || !isOlder(found, known)) return null;
      // Somebody may have sent the refresh token since then: what the store says of that stays.
      if (found.generation === generation && (row.attempt_id !== null || row.doubt !== null)) {
        this.#vouched.set(connection, found);
        return null;
      }
      const attempt = this.#attempts.get(connection);
      await this.overwriteIn(sql, id, grant, attempt?.generation === generation ? attempt : null);
      return Math.max(found.revision, known.revision) + 1;
    });
    if (revision !== null) this.#wrote({ connection, generation, revision });
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
    this.#attempts.delete(connection);
    this.#vouched.set(connection, { generation: this.#vouched.get(connection)?.generation ?? 0, revision });
    this.#revisions.removed(connection);
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

  /** What was read meanwhile may be newer. */
  #wrote({ connection, generation, revision }: KnownState & { readonly connection: string }): void {
    if (isOlder({ generation, revision }, this.#vouched.get(connection) ?? NOTHING_KNOWN)) return;
    this.#revisions.wrote(connection, revision);
    this.#vouched.set(connection, { generation, revision });
  }

  async #read(row: SiteGrantRow): Promise<FoundGrant | null> {
    const { clocks, sealing, hubId } = this.#context;
    const { connection, generation, revision, holder } = row;
    const opened = nullIfDamaged(() => readGrant(row, sealing));
    if (opened === null) {
      this.#damaged.add(connection);
      return null;
    }
    this.#damaged.delete(connection);
    const known = this.#vouched.get(connection) ?? NOTHING_KNOWN;
    const hasLostWrites = isOlder(row, known) || (!row.vouched && revision === known.revision);
    if (row.vouched && !hasLostWrites) this.#vouched.set(connection, { generation, revision });
    const endsAt = this.#endOfLease(row) - LEASE_END_MARGIN;
    if (!hasLostWrites) this.#noteAttempt(row, endsAt);
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

  #noteAttempt(row: SiteGrantRow, endsAt: number): void {
    const { connection, generation, attempt_id: id, holder, attempt, leased_until: leasedUntil } = row;
    if (id === null || holder === null || attempt === null || leasedUntil === null) this.#attempts.delete(connection);
    else this.#attempts.set(connection, { generation, id, holder, attempt, leasedUntil, endsAt });
  }

  /**
   * When this hub takes the lease of an open attempt to end, on its boot clock in ms: as it was when this hub first saw
   * the attempt, and no later than a whole lease after that, whatever happens to the database's clock.
   */
  #endOfLease({ connection, attempt_id: id, leased_until: leasedUntil }: SiteGrantRow): number {
    const { clock, clocks } = this.#context;
    const known = this.#attempts.get(connection);
    if (known?.id === id) return known.endsAt + LEASE_END_MARGIN;
    return Math.min(clocks.toUptime(leasedUntil ?? 0), clock.now().uptime + REFRESH_LEASE) + LEASE_END_MARGIN;
  }

  /** The server was replaced by one that may have lost the last writes. */
  #copyDoubt(): Doubt {
    return { kind: 'copy', lostAt: { ...this.#context.clock.now(), boot: '' }, sends: 0 };
  }
}

/** A generation never comes back, and its revisions only grow, unless the database loses writes. */
function isOlder(row: KnownState, known: KnownState): boolean {
  return row.generation < known.generation || (row.generation === known.generation && row.revision < known.revision);
}
