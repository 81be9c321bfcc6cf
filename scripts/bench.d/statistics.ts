/**
 * A quotient is told only where the middle half of the rounds' quotients lies this close together, as a part of their
 * median: where it does not, something else had the cores.
 */
const STEADY = 0.25;
/** Fewer rounds say nothing of their spread. */
const FEWEST_ROUNDS = 3;

/** The figures of one thing, one a round. */
export interface Rounds {
  readonly values: readonly number[];
}

/** One thing beside another, both measured in the same rounds. */
export interface Quotient {
  /** The median of the rounds' quotients. */
  readonly value: number;
  /** Between what the middle half of them lies; null where there are too few rounds to say. */
  readonly middle: readonly [low: number, high: number] | null;
  /** Whether the machine was quiet enough for it to say anything. */
  readonly steady: boolean;
  /** The quotient, or why there is none. */
  readonly told: string;
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
export function quotient(one: Rounds, other: Rounds): Quotient {
  const each = one.values.map((value, round) => {
    const beside = other.values[round] ?? Number.NaN;
    return value === beside ? 1 : value / beside;
  });
  const value = median(each);
  if (each.length < FEWEST_ROUNDS) {
    return { value, middle: null, steady: false, told: `– (fewer than ${FEWEST_ROUNDS} rounds)` };
  }
  const middle = [quantile(each, 0.25), quantile(each, 0.75)] as const;
  const spread = (middle[1] - middle[0]) / value;
  if (spread <= STEADY) return { value, middle, steady: true, told: `${value.toFixed(2)} ×` };
  const told = `– (the machine was too busy: the rounds lie ${(100 * spread).toFixed(0)} % apart)`;
  return { value, middle, steady: false, told };
}

/** The median, and in brackets the lowest and the highest: `77 (73–94)`. */
export function spread(values: readonly number[], digits: number): string {
  if (values.length === 1) return (values[0] ?? Number.NaN).toFixed(digits);
  const [low, high] = [Math.min(...values), Math.max(...values)].map((value) => value.toFixed(digits));
  return `${median(values).toFixed(digits)} (${low}–${high})`;
}
