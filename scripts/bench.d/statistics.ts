/** Fewer rounds give no interquartile range. */
const MIN_ROUNDS = 3;

/** The values of one measurement, one per round. */
export interface Rounds {
  readonly values: readonly number[];
}

/** The ratio of two measurements from the same rounds. */
export interface Ratio {
  /** The median of the rounds' ratios. */
  readonly value: number;
  /** Their interquartile range; null if there are too few rounds. */
  readonly middle: readonly [low: number, high: number] | null;
}

/** The middle value; for an even number of values the upper of the two. */
export function median(values: readonly number[]): number {
  return quantile(values, 0.5);
}

/** The value below which `share` of all lie, 0 to 1. */
export function quantile(values: readonly number[], share: number): number {
  const sorted = values.toSorted((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))] ?? Number.NaN;
}

/** `one` divided by `other`, round by round, because what slows a round down slows both. 0 / 0 counts as 1. */
export function ratioOf(one: Rounds, other: Rounds): Ratio {
  const each = one.values.map((value, round) => {
    const reference = other.values[round] ?? Number.NaN;
    return value === reference ? 1 : value / reference;
  });
  const middle = each.length < MIN_ROUNDS ? null : ([quantile(each, 0.25), quantile(each, 0.75)] as const);
  return { value: median(each), middle };
}

/** A ratio, with its interquartile range in brackets: `0.62 × (0.60–0.65)`. */
export function formatRatio({ value, middle }: Ratio): string {
  if (middle === null) return `– (fewer than ${MIN_ROUNDS} rounds)`;
  const [low, high] = middle.map((end) => end.toFixed(2));
  return `${value.toFixed(2)} × (${low}–${high})`;
}

/** The median, with the lowest and the highest value in brackets: `77 (73–94)`. */
export function formatSpread(values: readonly number[], digits: number): string {
  if (values.length === 1) return (values[0] ?? Number.NaN).toFixed(digits);
  const [low, high] = [Math.min(...values), Math.max(...values)].map((value) => value.toFixed(digits));
  return `${median(values).toFixed(digits)} (${low}–${high})`;
}
