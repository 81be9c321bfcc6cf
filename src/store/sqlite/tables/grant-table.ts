import type { Instant } from '../../../core/clock.ts';
import { type Grant, hasSameTokens } from '../../../core/grants/grant.ts';
import type { GrantSlot, GrantStore, RefreshAttempt, StoredGrant } from '../../../core/store.ts';
import { attemptColumn, type GrantRow, readGrant, toGrantRow } from '../../rows/grant-row.ts';
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
    { connection, generation, doubt }: Parameters<GrantStore['beginAttempt']>[0],
    attempt: RefreshAttempt,
  ): boolean {
    return this.#sql.run(
      'UPDATE grants SET attempt = ?, doubt = ? WHERE connection = ? AND generation = ? AND sealed IS NOT NULL',
      ...[attemptColumn(attempt), jsonOrNull(doubt), connection, generation],
    );
  }

  endAttempt({
    connection,
    generation,
    doubt,
    refused,
    misconfigured,
  }: Parameters<GrantStore['endAttempt']>[0]): boolean {
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
  clear(connection: string, generation: number): void {
    this.#damaged.delete(connection);
    this.#sql.run(
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
