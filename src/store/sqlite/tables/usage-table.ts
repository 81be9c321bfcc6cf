import type { TokenUsage } from '../../../core/appliances/usage.ts';
import { readUsage, usageColumn } from '../../rows/usage-row.ts';
import type { Sql } from '../sql.ts';

/** The usage of the appliances as rows. They are not sealed: a wrong count has no consequence. */
export class UsageTable {
  readonly #sql: Sql;

  constructor(sql: Sql) {
    this.#sql = sql;
  }

  /** By the ids of the appliances; invalid rows are left out. */
  all(): ReadonlyMap<string, TokenUsage> {
    return readUsage(this.#sql.all<unknown>('SELECT appliance, counts FROM usage'));
  }

  /** Writes nothing for appliances that were removed. Runs several statements: call it in a transaction. */
  save(usage: ReadonlyMap<string, TokenUsage>): void {
    for (const [appliance, counts] of usage) {
      this.#sql.run(
        `INSERT INTO usage (appliance, counts) SELECT id, ? FROM appliances WHERE id = ?
         ON CONFLICT DO UPDATE SET counts = excluded.counts`,
        ...[usageColumn(counts), appliance],
      );
    }
  }
}
