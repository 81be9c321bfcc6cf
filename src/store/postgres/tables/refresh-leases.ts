import type { Clock } from '../../../core/clock.ts';
import { Failure } from '../../../core/failure.ts';
import type { Grant } from '../../../core/grants/grant.ts';
import type { AttemptStart, GrantStore, RefreshAttempt } from '../../../core/store.ts';
import type { Sealing } from '../../keys/sealing.ts';
import { jsonOrNull } from '../../rows/schemas.ts';
import type { SiteDatabase } from '../database/database.ts';
import type { Statements } from '../database/sql.ts';
import type { SiteClocks } from '../link/clocks.ts';
import { hasEnded, IS_SETTLING, REFRESH_LEASE, SEND_TIME, SERVER, SETTLING_TIME } from '../link/site-state.ts';
import type { KnownGrants } from './known-grants.ts';
import { COLUMNS, LEASED_UNTIL, NO_ATTEMPT, type RowVersion, type SiteGrantRow } from './site-grant-row.ts';

/** What the grants of a site work with. */
export interface GrantsContext {
  readonly database: SiteDatabase;
  readonly sealing: Sealing;
  readonly clocks: SiteClocks;
  readonly clock: Clock;
  readonly hubId: string;
}

/** How long a hub waits after the end of a lease, in ms: it does not know the database's clock exactly. */
export const LEASE_END_MARGIN = 1000;
/** No row has it. */
const NO_REVISION = -1;

/** Writes a grant in a transaction before an attempt with it is begun. */
type GrantWrite = (
  sql: Statements,
) => Promise<(Pick<Grant, 'generation' | 'doubt' | 'refused'> & { readonly revision: number }) | null>;

/**
 * The attempts to refresh grants. Each is a lease: no other hub may begin one while it is open, and what ends it names
 * it.
 */
export class RefreshLeases {
  readonly #context: GrantsContext;
  readonly #known: KnownGrants;
  /** The connections of attempts that were not sent, and that the database may have, by the ids of the attempts. */
  readonly #abandoned = new Map<string, string>();
  /** This hub's attempts that were begun and have not ended yet, by connection. */
  readonly #open = new Map<string, { readonly generation: number; readonly id: string }>();
  /** No lease of another hub ends for this one before, on its boot clock in ms. */
  #noEndBefore: number;

  /** @param known what the hub knows of the grants */
  constructor(context: GrantsContext, known: KnownGrants) {
    this.#context = context;
    this.#known = known;
    // A hub that starts may be the first one that uses the database again.
    this.#noEndBefore = context.clock.now().uptime + SETTLING_TIME;
  }

  /** See `GrantStore.beginAttempt`. */
  async begin(grant: Parameters<GrantStore['beginAttempt']>[0], attempt: RefreshAttempt): Promise<AttemptStart> {
    const { connection, generation } = grant;
    // What is read from now on, the caller does not know yet.
    const revision = this.#known.revisions.get(connection);
    const begun = await this.#begin(connection, attempt, async () => ({ ...grant, revision }));
    return begun ?? this.#whyNotBegun(connection, { generation, revision });
  }

  /**
   * Writes a grant, and begins an attempt to refresh it, in one transaction.
   * @param write writes the grant; returns it, or null if nothing is to be begun
   */
  async beginNew(connection: string, attempt: RefreshAttempt, write: GrantWrite): Promise<AttemptStart> {
    return (await this.#begin(connection, attempt, write)) ?? { kind: 'superseded' };
  }

  /** @returns null if the database does not have what it is to be begun with */
  async #begin(connection: string, { token, at }: RefreshAttempt, write: GrantWrite): Promise<AttemptStart | null> {
    const { database, clock, hubId } = this.#context;
    const stored = JSON.stringify({ token, at });
    let attemptId = '';
    let sendBefore = 0;
    const written = database.write([`grants/${connection}`], async (sql, id) => {
      attemptId = id;
      const grant = await write(sql);
      if (grant === null) return null;
      sendBefore = clock.now().uptime + SEND_TIME;
      const [row] = await sql.all<RowVersion & { leased_until: number }>(
        `UPDATE grants SET attempt = $1, attempt_id = $2, holder = $3, doubt = $4, revision = revision + 1,
           leased_until = clock_timestamp() + $5::float8 * interval '1 ms'
         WHERE connection = $6 AND generation = $7 AND sealed IS NOT NULL AND revision = $8
           AND (attempt IS NULL OR holder = $3) AND (confirmed AND doubt IS NULL OR $4::text IS NOT NULL)
           AND (refused IS NULL OR $9) AND (confirmed OR NOT ${IS_SETTLING}) AND (SELECT server FROM site) = ${SERVER}
         RETURNING generation, revision, ${LEASED_UNTIL}`,
        ...[stored, id, hubId, jsonOrNull(grant.doubt), REFRESH_LEASE],
        ...[connection, grant.generation, grant.revision, grant.refused !== null],
      );
      return row ?? null;
    });
    const begun = await written.catch((error: unknown) => {
      // Nothing is sent; the database may have the attempt, which is removed when it can be used again.
      if (attemptId !== '') this.#abandoned.set(attemptId, connection);
      throw error;
    });
    if (begun === null) return null;
    const { generation, revision, leased_until } = begun;
    const attempt = { generation, attempt: stored, attempt_id: attemptId, holder: hubId, leased_until };
    const endsAt = sendBefore - SEND_TIME + REFRESH_LEASE;
    this.#known.began(connection, { generation, revision }, { ...attempt, endsAt });
    this.#open.set(connection, { generation, id: attemptId });
    return { kind: 'begun', sendBefore };
  }

  /** @param known the version that the caller knows */
  async #whyNotBegun(connection: string, known: RowVersion): Promise<AttemptStart> {
    const { database, hubId, clock } = this.#context;
    const [row] = await database.read((sql) =>
      sql.all<SiteGrantRow & { readonly is_settling: boolean; readonly is_other_server: boolean }>(
        `SELECT ${COLUMNS}, ${IS_SETTLING} AS is_settling, (SELECT server FROM site) <> ${SERVER} AS is_other_server
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
    if (isLeased) return { kind: 'under_way', until: this.endOf(row) + LEASE_END_MARGIN };
    const isSettling = !row.confirmed && row.is_settling;
    return isSettling ? { kind: 'under_way', until: clock.now().uptime + SETTLING_TIME } : { kind: 'superseded' };
  }

  /**
   * Ends this hub's attempt. If it has none, it ends another hub's whose lease has ended, or writes to a grant without
   * an attempt, as `SiteGrants` has read it.
   */
  async end(grant: Parameters<GrantStore['endAttempt']>[0]): Promise<boolean> {
    const { connection, generation, doubt, refused, misconfigured } = grant;
    const open = this.#open.get(connection);
    const isOwn = open?.generation === generation;
    const attempt = isOwn ? open.id : (this.#known.attempt(connection)?.attempt_id ?? null);
    // Another hub may have ended this hub's attempt: what it has written since then must stay.
    const known = isOwn ? NO_REVISION : this.#known.revisions.get(connection);
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
    if (this.#open.get(connection) === open) this.#open.delete(connection);
    if (revision === null) return false;
    this.#known.wroteWithoutAttempt(connection, { generation, revision });
    return true;
  }

  /**
   * The database can be used again. Other hubs may have the outcomes of attempts whose leases have ended meanwhile, and
   * get the time to write them. This hub's attempts that were not sent, and that the database may have, are removed.
   */
  async onReturning(): Promise<void> {
    this.#noEndBefore = this.#context.clock.now().uptime + SETTLING_TIME;
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

  /** The id of this hub's attempt for a generation that has not ended yet; null if there is none. */
  openAttempt(connection: string, generation: number): string | null {
    const open = this.#open.get(connection);
    return open?.generation === generation ? open.id : null;
  }

  /** Whether this hub has begun an attempt without sending it. @param id null for none */
  isAbandoned(id: string | null): boolean {
    return id !== null && this.#abandoned.has(id);
  }

  /**
   * When this hub takes the lease of an open attempt to end, on its boot clock in ms: as it was when this hub first saw
   * the attempt, and no later than a whole lease after that, whatever happens to the database's clock; but not before
   * the other hubs had time to return to the database after an outage.
   */
  endOf({ connection, attempt_id: id, leased_until: leasedUntil }: SiteGrantRow): number {
    const { clock, clocks } = this.#context;
    const known = this.#known.attempt(connection);
    const end =
      known?.attempt_id === id
        ? known.endsAt
        : Math.min(clocks.toUptime(leasedUntil ?? 0), clock.now().uptime + REFRESH_LEASE);
    return Math.max(end, this.#noEndBefore);
  }
}
