/** The raw values of one measurement, as in the JSON file. All tables are made from them. */
export interface Measurement {
  /** The row of the table: a program (`latchkey`, or one of its peers) or a situation of the hub. */
  readonly row: string;
  /** The column of the table: `keep-alive: requests`. */
  readonly what: string;
  /** The checkout: `latchkey`, or `latchkey at 1a2b3c4`. */
  readonly of: string;
  /** `1/s`, `ms`, `µs`, `MB`, `kB`, `%`, or what is counted. */
  readonly unit: string;
  /** One value per round, in the order of the rounds. Everything is measured in the same rounds. */
  readonly values: readonly number[];
  readonly better: 'more' | 'less';
}

/** The name of this checkout in measurements, and of the hub among its peers. */
export const LATCHKEY = 'latchkey';

/** A checkout of Latchkey whose build (`dist/`) is measured. */
export interface BenchSubject {
  /** {@link LATCHKEY}, or `latchkey at 1a2b3c4` for the revision that it is compared with. */
  readonly name: string;
  readonly root: string;
}

/** The options of a run of suites. */
export interface BenchOptions {
  /** The suite must finish in seconds; its figures mean nothing. */
  readonly quick: boolean;
  /** This checkout, followed by the one that it is compared with, if any. */
  readonly subjects: readonly [BenchSubject, ...BenchSubject[]];
  /** A folder that is deleted afterwards. */
  readonly scratch: string;
  /** Prints a line about the progress to standard error. */
  progress(line: string): void;
}

/** A target and its result. */
export interface Target {
  readonly text: string;
  /** The measured value, as text. */
  readonly measured: string;
  readonly verdict: 'met' | 'not met' | 'not measured';
}

/** The part of docs/benchmarks.md that a suite generates, without its heading. */
export interface Report {
  readonly targets: readonly Target[];
  /** Markdown. docs/benchmarks.md explains the tables after the generated part. */
  readonly tables: readonly string[];
}

/** A group of measurements that are made in one run. */
export interface Suite {
  /** The name on the command line and in file names: `hand-out`. */
  readonly name: string;
  /** The heading in docs/benchmarks.md. */
  readonly title: string;
  /** The programs that the suite needs, each with its Debian package: `{ strace: 'strace' }`. */
  readonly programs?: Readonly<Record<string, string>>;
  measure(bench: BenchOptions, measured: Measurements): Promise<void>;
  report(measured: Measurements): Report;
}

/** Collects values by measurement, in the order of their arrival. */
export class Measurements {
  readonly #all = new Map<string, Measurement & { readonly values: number[] }>();

  /** @param of the checkout that is measured; a peer of the hub counts to this one */
  add(row: string, what: string, unit: string, value: number, { better = 'less', of = LATCHKEY }: AddOptions = {}) {
    const key = JSON.stringify([row, what, of]);
    const one = this.#all.get(key) ?? { row, what, of, unit, values: [], better };
    one.values.push(value);
    this.#all.set(key, one);
  }

  get all(): readonly Measurement[] {
    return [...this.#all.values()];
  }

  /** This checkout's measurement, if there is one. */
  find(row: string, what: string): Measurement | undefined {
    return this.#all.get(JSON.stringify([row, what, LATCHKEY]));
  }

  /** The same, which must exist. @throws Error */
  get(row: string, what: string): Measurement {
    const found = this.find(row, what);
    if (found === undefined) throw new Error(`there is no "${what}" of ${row}`);
    return found;
  }

  /** Its median. */
  median(row: string, what: string): number {
    return median(this.get(row, what).values);
  }

  /** One row's values divided by another's, see {@link ratioOf}. */
  ratio(row: string, other: string, what: string): Ratio {
    return ratioOf(this.get(row, what), this.get(other, what));
  }
}

/** What {@link Measurements.add} may be told besides the value. */
interface AddOptions {
  readonly better?: Measurement['better'];
  readonly of?: string;
}

/**
 * Measures everything once per round, so that a disturbance of the machine affects all of it. Another one is first in
 * each round, so that none always runs on a warmed-up machine.
 */
export async function runRounds<One>(
  rounds: number,
  all: readonly One[],
  measure: (one: One, round: number) => Promise<void>,
): Promise<void> {
  for (let round = 0; round < rounds; round += 1) {
    for (let index = 0; index < all.length; index += 1) {
      await measure(all[(index + round) % all.length] as One, round);
    }
  }
}

/** A ratio of fewer rounds means nothing. */
const MIN_ROUNDS = 3;

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
function quantile(values: readonly number[], share: number): number {
  const sorted = values.toSorted((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))] ?? Number.NaN;
}

/** `one` divided by `other`, round by round, because what slows a round down slows both. 0 / 0 counts as 1. */
export function ratioOf(one: Pick<Measurement, 'values'>, other: Pick<Measurement, 'values'>): Ratio {
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

/** A target for a ratio. It is checked only if the whole interquartile range meets the target, or misses it. */
export function ratioTarget(text: string, ratio: Ratio, bound: { atLeast?: number; atMost?: number }): Target {
  const verdictOn = (value: number) =>
    value >= (bound.atLeast ?? -Infinity) && value <= (bound.atMost ?? Infinity) ? 'met' : 'not met';
  const [low, high] = (ratio.middle ?? []).map(verdictOn);
  if (low !== undefined && low === high) return { text, measured: formatRatio(ratio), verdict: low };
  const range = (ratio.middle ?? []).map((end) => end.toFixed(2)).join(' to ');
  const why = range === '' ? 'fewer than 3 rounds' : `the machine was too busy: interquartile range ${range}`;
  return { text, measured: `– (${why})`, verdict: 'not measured' };
}

/** A target for a figure that has no reference measurement. */
export function absoluteTarget(text: string, value: number, unit: string, atMost: number, digits = 1): Target {
  return { text, measured: `${value.toFixed(digits)} ${unit}`.trim(), verdict: value <= atMost ? 'met' : 'not met' };
}
