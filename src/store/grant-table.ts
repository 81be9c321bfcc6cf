import type { Instant } from '../core/clock.ts';
import type { Attempt, Store } from '../core/store.ts';
import { attemptColumn, type GrantRow } from './rows.ts';
import { jsonOrNull } from './schemas.ts';
import type { Sql } from './sql.ts';

/** The grants as rows: every write names the generation it replaces. */
export class GrantTable {
  readonly #sql: Sql;

  constructor(sql: Sql) {
    this.#sql = sql;
  }

  all(): GrantRow[] {
    return this.#sql.all<GrantRow>('SELECT * FROM grants WHERE tokens IS NOT NULL');
  }

  one(appliance: string): GrantRow | undefined {
    return this.#sql.get<GrantRow>('SELECT * FROM grants WHERE appliance = ? AND tokens IS NOT NULL', appliance);
  }

  generation(appliance: string): number {
    const row = this.#sql.get<{ generation: number }>('SELECT generation FROM grants WHERE appliance = ?', appliance);
    return row?.generation ?? 0;
  }

  /** Whether each appliance that has, or had, a grant has it in this generation, and no other has one. */
  areOf(generations: ReadonlyMap<string, number>): boolean {
    const now = this.#sql.all<Pick<GrantRow, 'appliance' | 'generation'>>('SELECT appliance, generation FROM grants');
    if (now.length !== generations.size) return false;
    return now.every(({ appliance, generation }) => generations.get(appliance) === generation);
  }

  beginAttempt({ appliance, generation, doubt }: Parameters<Store['beginAttempt']>[0], attempt: Attempt): boolean {
    return this.#sql.run(
      'UPDATE grants SET attempt = ?, doubt = ? WHERE appliance = ? AND generation = ? AND tokens IS NOT NULL',
      ...[attemptColumn(attempt), jsonOrNull(doubt), appliance, generation],
    );
  }

  endAttempt({ appliance, generation, doubt, refused }: Parameters<Store['endAttempt']>[0]): boolean {
    return this.#sql.run(
      'UPDATE grants SET attempt = ?, doubt = ?, refused = ? WHERE appliance = ? AND generation = ? AND tokens IS NOT NULL',
      ...[attemptColumn(null), jsonOrNull(doubt), jsonOrNull(refused), appliance, generation],
    );
  }

  distrust(appliance: string, generation: number, at: Instant): boolean {
    return this.#sql.run(
      'UPDATE grants SET distrusted = ? WHERE appliance = ? AND generation = ? AND tokens IS NOT NULL',
      ...[JSON.stringify(at), appliance, generation],
    );
  }

  /** Puts a grant in the place of the one with the generation before. */
  replace(row: GrantRow): boolean {
    const values = [row.tokens, row.attempt, row.doubt, row.refused, row.distrusted, row.appliance];
    const replaced = this.#sql.run(
      `UPDATE grants SET generation = generation + 1,
         tokens = ?, attempt = ?, doubt = ?, refused = ?, distrusted = ?
       WHERE appliance = ? AND generation = ?`,
      ...values,
      row.generation - 1,
    );
    if (replaced || row.generation !== 1) return replaced;
    return this.#sql.run(
      `INSERT INTO grants (tokens, attempt, doubt, refused, distrusted, appliance, generation)
       VALUES (?, ?, ?, ?, ?, ?, 1) ON CONFLICT DO NOTHING`,
      ...values,
    );
  }

  /** Puts a grant in place, whatever was there. */
  put(row: GrantRow): void {
    this.#sql.run(
      `INSERT OR REPLACE INTO grants
         (appliance, generation, tokens, attempt, doubt, refused, distrusted) VALUES (?, ?, ?, ?, ?, ?, ?)`,
      ...[row.appliance, row.generation, row.tokens, row.attempt, row.doubt, row.refused, row.distrusted],
    );
  }

  /** Leaves nothing but the generation. */
  forget(appliance: string, generation: number): boolean {
    return this.#sql.run(
      `UPDATE grants SET generation = generation + 1,
         tokens = NULL, attempt = NULL, doubt = NULL, refused = NULL, distrusted = NULL
       WHERE appliance = ? AND generation = ? AND tokens IS NOT NULL`,
      ...[appliance, generation],
    );
  }
}
