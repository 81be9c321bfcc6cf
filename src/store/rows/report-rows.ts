import * as v from 'valibot';
import type { TokenUsage } from '../../core/appliances/usage.ts';
import { PAIRING_FAILURE_REASONS } from '../../core/pairings/pairing.ts';
import type { StoredHistoryEntry } from '../../core/reports/history.ts';
import { PROBLEM_CODES } from '../../core/reports/problem.ts';

/** No connection ever has so many lines: a higher number is damage, and no line could follow it. */
export const NUMBER_LIMIT = 2 ** 40;

const time = v.pipe(v.number(), v.integer(), v.minValue(0), v.maxValue(8.64e15));
const commonColumns = {
  connection: v.string(),
  number: v.pipe(v.number(), v.integer(), v.maxValue(NUMBER_LIMIT - 1)),
  first: time,
  last: time,
  count: v.pipe(v.number(), v.safeInteger(), v.minValue(1)),
};

/**
 * A row of `history`: the lines of each connection are numbered in their order. What a person did has no reason, so its
 * `why` is the name of that user, if it is known.
 */
export const historyRow = v.variant('kind', [
  v.object({ ...commonColumns, kind: v.literal('paired'), why: v.nullable(v.string()) }),
  v.object({ ...commonColumns, kind: v.literal('unpaired'), why: v.nullable(v.string()) }),
  v.object({ ...commonColumns, kind: v.picklist(['refreshed', 'token_refused']), why: v.null() }),
  v.object({ ...commonColumns, kind: v.literal('pairing_failed'), why: v.picklist(PAIRING_FAILURE_REASONS) }),
  v.object({ ...commonColumns, kind: v.literal('refresh_failed'), why: v.picklist(PROBLEM_CODES) }),
]);

export type HistoryRow = v.InferOutput<typeof historyRow>;

/** How many lines are searched for one to merge with: one day never has so many. */
export const MAX_MERGE_CANDIDATES = 40;

/** The valid ones of some rows, in their order. */
export function readHistoryRows(rows: readonly unknown[]): HistoryRow[] {
  return rows.flatMap((row) => {
    const read = v.safeParse(historyRow, row);
    return read.success ? [read.output] : [];
  });
}

/** The line of a row. */
export function toHistoryLine(row: HistoryRow): StoredHistoryEntry {
  const { first, last, count } = row;
  if (row.kind !== 'paired' && row.kind !== 'unpaired') return { kind: row.kind, why: row.why, first, last, count };
  return { kind: row.kind, why: null, first, last, count, ...(row.why !== null && { user: row.why }) };
}

/** The `why` of a line's row. */
export function whyColumn({ why, user }: StoredHistoryEntry): string | null {
  return why ?? user ?? null;
}

const whole = v.pipe(v.number(), v.safeInteger(), v.minValue(0));

const usageCounts = v.object({
  last: v.pipe(whole, v.maxValue(8.64e15)),
  days: v.pipe(v.array(v.tuple([whole, whole])), v.maxLength(14)),
});

/** A row of `usage`. Each day is the number of days since 1970-01-01 and the number of tokens. */
const usageRow = v.object({
  appliance: v.string(),
  counts: v.pipe(
    v.string(),
    v.parseJson(),
    v.object({ ...usageCounts.entries, connections: v.exactOptional(v.record(v.string(), usageCounts)) }),
  ),
});

/** The usage in some rows by the ids of the appliances; invalid rows are left out. */
export function readUsage(rows: readonly unknown[]): ReadonlyMap<string, TokenUsage> {
  return new Map(
    rows.flatMap((row) => {
      const read = v.safeParse(usageRow, row);
      if (!read.success) return [];
      const { appliance, counts } = read.output;
      const { connections, ...total } = counts;
      return [[appliance, { ...toUsage(total), ...(connections && { connections: mapValues(connections, toUsage) }) }]];
    }),
  );
}

/** The column `counts` of an appliance. */
export function usageColumn({ connections, ...total }: TokenUsage): string {
  return JSON.stringify({ ...toCounts(total), connections: connections && mapValues(connections, toCounts) });
}

function toUsage({ last, days }: v.InferOutput<typeof usageCounts>): TokenUsage {
  return { last, days: days.map(([day, count]) => ({ day, count })) };
}

function toCounts({ last, days }: TokenUsage): v.InferInput<typeof usageCounts> {
  return { last, days: days.map(({ day, count }) => [day, count]) };
}

function mapValues<From, To>(values: Readonly<Record<string, From>>, map: (value: From) => To): Record<string, To> {
  return Object.fromEntries(Object.entries(values).map(([key, value]) => [key, map(value)]));
}
