import * as v from 'valibot';
import type { Instant } from '../../core/clock.ts';
import type { Grant } from '../../core/grants/grant.ts';
import type { RefreshAttempt, Store, StoredGrant } from '../../core/store.ts';
import { instantSchema } from '../../system/instant-schema.ts';
import type { Sql } from '../database/sql.ts';
import type { Sealing } from '../keys/sealing.ts';
import {
  doubt,
  fromStoredGrant,
  jsonOrNull,
  nullIfDamaged,
  parseJson,
  sealed,
  storedTokens,
  toStoredGrant,
} from './schemas.ts';

const attempt = v.nullable(v.object({ token: v.string(), at: instantSchema }));

/** Sealed together, because a token of unknown age is useless. */
const tokens = v.object(storedTokens);

/** An attempt takes some 130 characters, and its times sometimes have one more digit. */
const ATTEMPT_PADDING = 160;
/** Times and tokens of one portal differ by a few characters from one refresh to the next. */
const TOKENS_PADDING = 64;

const nullableText = v.nullable(v.string());

/** A row of `grants`. The row of a deleted grant has no tokens. */
export const grantRow = v.object({
  connection: v.string(),
  generation: v.pipe(v.number(), v.integer(), v.minValue(1)),
  sealed: v.nullable(sealed),
  attempt: nullableText,
  doubt: nullableText,
  refused: nullableText,
  distrusted: nullableText,
  misconfigured: nullableText,
});

export type GrantRow = v.InferOutput<typeof grantRow>;

/**
 * The open refresh attempt as a column. It has the same length with and without an attempt, so that SQLite writes only
 * the page that it is on, and not the whole row with its tokens.
 */
function attemptColumn(attempt: RefreshAttempt | null): string {
  return padJson(JSON.stringify(attempt), ATTEMPT_PADDING);
}

/** Pads a JSON text with blanks to a multiple of `step` characters: a row that keeps its length keeps its pages. */
function padJson(json: string, step: number): string {
  return json.padEnd(step * Math.ceil(json.length / step));
}

/** The identity that tokens are sealed with: they are valid only for this connection and this generation. */
export function grantRowIdentity({ connection, generation }: Pick<GrantRow, 'connection' | 'generation'>): string {
  return `grants/${connection}/${generation}`;
}

/** A grant as a row, its tokens sealed; a new grant has no open attempt. */
function toRow(grant: Grant, sealing: Sealing): GrantRow {
  const { connection, generation, doubt, refused, accessTokenRejectedAt: distrusted, misconfigured, ...rest } = grant;
  return {
    connection,
    generation,
    sealed: sealing.seal(grantRowIdentity(grant), padJson(JSON.stringify(toStoredGrant(rest)), TOKENS_PADDING)),
    attempt: attemptColumn(null),
    doubt: jsonOrNull(doubt),
    refused: jsonOrNull(refused),
    distrusted: jsonOrNull(distrusted),
    misconfigured: jsonOrNull(misconfigured),
  };
}

/**
 * Opens a row that has tokens.
 * @throws Failure as {@link Sealing}, or `store_unreadable`
 */
export function readGrant(row: GrantRow, sealing: Sealing): StoredGrant {
  const where = grantRowIdentity(row);
  return {
    grant: {
      connection: row.connection,
      generation: row.generation,
      ...fromStoredGrant(parseJson(tokens, where, sealing.open(where, row.sealed ?? ''))),
      doubt: parseJson(v.nullable(doubt), where, row.doubt ?? 'null'),
      refused: parseJson(v.nullable(instantSchema), where, row.refused ?? 'null'),
      accessTokenRejectedAt: parseJson(v.nullable(instantSchema), where, row.distrusted ?? 'null'),
      misconfigured: parseJson(v.nullable(instantSchema), where, row.misconfigured ?? 'null'),
    },
    attempt: parseJson(attempt, where, row.attempt ?? 'null'),
  };
}

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

  generation(connection: string): number {
    const row = this.#sql.get<{ generation: number }>('SELECT generation FROM grants WHERE connection = ?', connection);
    return row?.generation ?? 0;
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

  /** Replaces the grant of the previous generation. @returns false if the store has another generation */
  replace(grant: Grant): boolean {
    const row = toRow(grant, this.#sql.sealing);
    const { sealed, attempt, doubt, refused, distrusted, misconfigured, connection } = row;
    const values = [sealed, attempt, doubt, refused, distrusted, misconfigured, connection];
    const replaced = this.#sql.run(
      `UPDATE grants SET generation = generation + 1,
         sealed = ?, attempt = ?, doubt = ?, refused = ?, distrusted = ?, misconfigured = ?
       WHERE connection = ? AND generation = ?`,
      ...values,
      row.generation - 1,
    );
    if (replaced || row.generation !== 1) return replaced;
    return this.#sql.run(
      `INSERT INTO grants (sealed, attempt, doubt, refused, distrusted, misconfigured, connection, generation)
       VALUES (?, ?, ?, ?, ?, ?, ?, 1) ON CONFLICT DO NOTHING`,
      ...values,
    );
  }

  /** Writes a grant, whatever the store has. */
  overwrite(grant: Grant): void {
    const row = toRow(grant, this.#sql.sealing);
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
