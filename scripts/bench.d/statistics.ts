/** Fewer rounds say nothing of their spread. */
const MIN_ROUNDS = 3;

/** The figures of one thing, one a round. */
export interface Rounds {
  readonly values: readonly number[];
}

/** One thing beside another, both measured in the same rounds. */
export interface Ratio {
  /** The median of the rounds' quotients. */
  readonly value: number;
  /** Between what the middle half of them lies; null where there are too few rounds to say. */
  readonly middle: readonly [low: number, high: number] | null;
}

/** The middle value; of an even number of values the upper one. */
export function median(values: readonly number[]): number {
  return quantile(values, 0.5);
}

/** The value below which `share` of all lie, 0 to 1. */
export function quantile(values: readonly number[], share: number): number {
  const sorted = values.toSorted((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))] ?? Number.NaN;
}

/** `one` as so many times `other`, round by round: what slows a round down slows both. Nothing is as much as nothing. */
export function ratioOf(one: Rounds, other: Rounds): Ratio {
  const each = one.values.map((value, round) => {
    const beside = other.values[round] ?? Number.NaN;
    return value === beside ? 1 : value / beside;
  });
  const middle = each.length < MIN_ROUNDS ? null : ([quantile(each, 0.25), quantile(each, 0.75)] as const);
  return { value: median(each), middle };
}

/** A quotient, and in brackets its middle half: `0.62 × (0.60–0.65)`. */
export function formatRatio({ value, middle }: Ratio): string {
  if (middle === null) return `– (fewer than ${MIN_ROUNDS} rounds)`;
  const [low, high] = middle.map((end) => end.toFixed(2));
  return `${value.toFixed(2)} × (${low}–${high})`;
}

/** The median, and in brackets the lowest and the highest: `77 (73–94)`. */
export function formatSpread(values: readonly number[], digits: number): string {
  if (values.length === 1) return (values[0] ?? Number.NaN).toFixed(digits);
  const [low, high] = [Math.min(...values), Math.max(...values)].map((value) => value.toFixed(digits));
  return `${median(values).toFixed(digits)} (${low}–${high})`;
}
