import type { Instant } from '../../../core/clock.ts';
import { type Grant, hasSameTokens } from '../../../core/grants/grant.ts';
import type { Pairing } from '../../../core/pairings/pairing.ts';
import type { GrantSlot, RefreshAttempt, Store, StoredGrant } from '../../../core/store.ts';
import { attemptColumn, type GrantRow, readGrant, toGrantRow } from '../../rows/grant-row.ts';
import { MAX_ENDED_PAIRINGS, type PairingRow, readPairing, toPairingRow } from '../../rows/pairing-row.ts';
import { jsonOrNull, nullIfDamaged } from '../../rows/schemas.ts';
import type { Sql } from '../sql.ts';

/** The grants as rows: every write names the generation that it replaces. */
export class GrantTable {
  readonly #sql: Sql;
  readonly #damaged = new Set<string>();

  constructor(sql: Sql) {
    this.#sql = sql;
  }

  /** Connections whose grant can't be read. */
  get damaged(): ReadonlySet<string> {
    return this.#damaged;
  }

  all(): StoredGrant[] {
    const rows = this.#sql.all<GrantRow>('SELECT * FROM grants WHERE sealed IS NOT NULL');
    return rows.flatMap((row) => this.#read(row) ?? []);
  }

  find(connection: string): StoredGrant | null {
    const row = this.#sql.get<GrantRow>('SELECT * FROM grants WHERE connection = ? AND sealed IS NOT NULL', connection);
    return row === undefined ? null : this.#read(row);
  }

  slot(connection: string): GrantSlot {
    const row = this.#sql.get<{ generation: number }>('SELECT generation FROM grants WHERE connection = ?', connection);
    return { generation: row?.generation ?? 0, grant: this.find(connection)?.grant ?? null };
  }

  beginAttempt(
    { connection, generation, doubt }: Parameters<Store['beginAttempt']>[0],
    attempt: RefreshAttempt,
  ): boolean {
    return this.#sql.run(
      'UPDATE grants SET attempt = ?, doubt = ? WHERE connection = ? AND generation = ? AND sealed IS NOT NULL',
      ...[attemptColumn(attempt), jsonOrNull(doubt), connection, generation],
    );
  }

  endAttempt({ connection, generation, doubt, refused, misconfigured }: Parameters<Store['endAttempt']>[0]): boolean {
    return this.#sql.run(
      `UPDATE grants SET attempt = ?, doubt = ?, refused = ?, misconfigured = ?
       WHERE connection = ? AND generation = ? AND sealed IS NOT NULL`,
      ...[attemptColumn(null), ...[doubt, refused, misconfigured].map(jsonOrNull), connection, generation],
    );
  }

  rejectAccessToken(connection: string, generation: number, at: Instant): boolean {
    return this.#sql.run(
      'UPDATE grants SET distrusted = ? WHERE connection = ? AND generation = ? AND sealed IS NOT NULL',
      ...[JSON.stringify(at), connection, generation],
    );
  }

  /**
   * Replaces the grant of the previous generation. One that is there already is written again: it may not be on the disk.
   * @returns false if the store has another generation, or the connection was removed
   */
  replace(grant: Grant): boolean {
    const stored = this.find(grant.connection)?.grant ?? null;
    const isThere = stored !== null && stored.generation === grant.generation && hasSameTokens(stored, grant);
    const row = toGrantRow(grant, this.#sql.sealing);
    const { sealed, attempt, doubt, refused, distrusted, misconfigured, connection, generation } = row;
    const values = [generation, sealed, attempt, doubt, refused, distrusted, misconfigured, connection];
    const replaced = this.#sql.run(
      `UPDATE grants SET generation = ?, sealed = ?, attempt = ?, doubt = ?, refused = ?, distrusted = ?, misconfigured = ?
       WHERE connection = ? AND generation = ?`,
      ...values,
      isThere ? generation : generation - 1,
    );
    if (replaced || generation !== 1) return replaced;
    return this.#sql.run(
      `INSERT INTO grants (generation, sealed, attempt, doubt, refused, distrusted, misconfigured, connection)
       SELECT ?, ?, ?, ?, ?, ?, ?, id FROM connections WHERE id = ? ON CONFLICT DO NOTHING`,
      ...values,
    );
  }

  /** Writes a grant, whatever the store has. */
  overwrite(grant: Grant): void {
    const row = toGrantRow(grant, this.#sql.sealing);
    this.#sql.run(
      `INSERT OR REPLACE INTO grants
         (connection, generation, sealed, attempt, doubt, refused, distrusted, misconfigured)
         VALUES (?, ?, ?, ?, ?, ?, ?, ?)`,
      ...[row.connection, row.generation, row.sealed, row.attempt, row.doubt, row.refused],
      ...[row.distrusted, row.misconfigured],
    );
  }

  /** Deletes a grant, but keeps its generation. */
  clear(connection: string, generation: number): boolean {
    this.#damaged.delete(connection);
    return this.#sql.run(
      `UPDATE grants SET generation = generation + 1,
         sealed = NULL, attempt = NULL, doubt = NULL, refused = NULL, distrusted = NULL, misconfigured = NULL
       WHERE connection = ? AND generation = ? AND sealed IS NOT NULL`,
      ...[connection, generation],
    );
  }

  /** An unreadable grant requires a new pairing of its connection, and does not affect other connections. */
  #read(row: GrantRow): StoredGrant | null {
    const grant = nullIfDamaged(() => readGrant(row, this.#sql.sealing));
    if (grant === null) this.#damaged.add(row.connection);
    else this.#damaged.delete(row.connection);
    return grant;
  }
}

/** The pairings as rows. */
export class PairingTable {
  readonly #sql: Sql;

  constructor(sql: Sql) {
    this.#sql = sql;
  }

  /** Leaves out unreadable pairings: a new one is easily started. @param ids left out: all of them */
  all(ids?: ReadonlySet<string>): Pairing[] {
    const rows =
      ids === undefined
        ? this.#sql.all<PairingRow>('SELECT * FROM pairings ORDER BY number')
        : this.#sql.all<PairingRow>(
            'SELECT * FROM pairings WHERE id IN (SELECT value FROM json_each(?)) ORDER BY number',
            JSON.stringify([...ids]),
          );
    return rows.flatMap((row) => nullIfDamaged(() => readPairing(row, this.#sql.sealing)) ?? []);
  }

  /** Runs two statements: call it in a transaction. */
  save(pairing: Pairing): void {
    const { id, connection, step, sealed } = toPairingRow(pairing, this.#sql.sealing);
    this.#sql.run(
      `INSERT INTO pairings (id, connection, step, sealed) VALUES (?, ?, ?, ?)
       ON CONFLICT (id) DO UPDATE SET step = excluded.step, sealed = excluded.sealed`,
      ...[id, connection, step, sealed],
    );
    this.#sql.run(
      `DELETE FROM pairings WHERE connection = ? AND step = 'ended' AND number <=
         (SELECT number FROM pairings WHERE connection = ? ORDER BY number DESC LIMIT 1 OFFSET ${MAX_ENDED_PAIRINGS})`,
      ...[connection, connection],
    );
  }
}
