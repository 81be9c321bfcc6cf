import * as v from 'valibot';
import type { TokenUsage } from '../../core/appliances/usage.ts';
import type { Sql } from '../database/sql.ts';

const whole = v.pipe(v.number(), v.safeInteger(), v.minValue(0));

/** A row of `usage`. Each day is the number of days since 1970-01-01 and the number of tokens. */
const usageRow = v.object({
  appliance: v.string(),
  counts: v.pipe(
    v.string(),
    v.parseJson(),
    v.object({
      last: v.pipe(whole, v.maxValue(8.64e15)),
      days: v.pipe(v.array(v.tuple([whole, whole])), v.maxLength(14)),
    }),
  ),
});

/** The usage of the appliances as rows. They are not sealed: a wrong count has no consequence. */
export class UsageTable {
  readonly #sql: Sql;

  constructor(sql: Sql) {
    this.#sql = sql;
  }

  /** By the ids of the appliances; invalid rows are left out. */
  all(): ReadonlyMap<string, TokenUsage> {
    return new Map(
      this.#sql.all<unknown>('SELECT appliance, counts FROM usage').flatMap((row) => {
        const read = v.safeParse(usageRow, row);
        if (!read.success) return [];
        const { appliance, counts } = read.output;
        return [[appliance, { last: counts.last, days: counts.days.map(([day, count]) => ({ day, count })) }]];
      }),
    );
  }

  /** Writes nothing for appliances that were removed. Runs several statements: call it in a transaction. */
  save(usage: ReadonlyMap<string, TokenUsage>): void {
    for (const [appliance, { last, days }] of usage) {
      this.#sql.run(
        `INSERT INTO usage (appliance, counts) SELECT id, ? FROM appliances WHERE id = ?
         ON CONFLICT DO UPDATE SET counts = excluded.counts`,
        ...[JSON.stringify({ last, days: days.map(({ day, count }) => [day, count]) }), appliance],
      );
    }
  }
}
