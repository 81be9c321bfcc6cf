import * as v from 'valibot';
import type { TokenUsage } from '../../core/appliances/usage.ts';

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

/** The usage in some rows by the ids of the appliances; invalid rows are left out. */
export function readUsage(rows: readonly unknown[]): ReadonlyMap<string, TokenUsage> {
  return new Map(
    rows.flatMap((row) => {
      const read = v.safeParse(usageRow, row);
      if (!read.success) return [];
      const { appliance, counts } = read.output;
      return [[appliance, { last: counts.last, days: counts.days.map(([day, count]) => ({ day, count })) }]];
    }),
  );
}

/** The column `counts` of an appliance. */
export function usageColumn({ last, days }: TokenUsage): string {
  return JSON.stringify({ last, days: days.map(({ day, count }) => [day, count]) });
}
