import { formatRatio, type Ratio } from './statistics.ts';

/** Figures of one thing, raw: as they go to JSON, and what all tables are made from. */
export interface Measurement {
  /** What was measured, as a table heads it: `keep-alive: requests`. */
  readonly what: string;
  /** Of what: `latchkey`, `latchkey at 1a2b3c4`, or one of its peers. */
  readonly of: string;
  /** `1/s`, `ms`, `µs`, `MB`, `kB`, `%`, or what is counted. */
  readonly unit: string;
  /** One a round, in the order of the rounds: the rounds of all that stand side by side are the same. */
  readonly values: readonly number[];
  readonly better: 'more' | 'less';
}

/** A checkout of Latchkey whose build (`dist/`) is measured. */
export interface BenchSubject {
  /** `latchkey`, or `latchkey at 1a2b3c4` for the revision that it is compared with. */
  readonly name: string;
  readonly root: string;
}

/** What a suite is given. */
export interface BenchOptions {
  /** Runs through it all in seconds: its figures are worth nothing. */
  readonly quick: boolean;
  /** This checkout, and behind it the one that it is compared with. */
  readonly subjects: readonly [BenchSubject, ...BenchSubject[]];
  /** A folder that is gone afterwards. */
  readonly scratch: string;
  /** Says on standard error how far it is. */
  progress(line: string): void;
}

/** What was meant to be reached. */
export interface Target {
  readonly text: string;
  /** What was measured, as a reader sees it. */
  readonly measured: string;
  readonly verdict: 'met' | 'not met' | 'not measured';
}

/** What people read of a suite, below its heading. */
export interface Report {
  readonly targets: readonly Target[];
  /** Markdown; what they mean stands behind them in docs/benchmarks.md. */
  readonly tables: readonly string[];
}

/** A benchmark of one promise, all of it measured in one run. */
export interface Suite {
  /** On the command line and in file names: `hand-out`. */
  readonly name: string;
  /** The heading in docs/benchmarks.md. */
  readonly title: string;
  /** Debian's packages that are needed, by the programs in them: `{ strace: 'strace' }`. */
  readonly programs: Readonly<Record<string, string>>;
  measure(bench: BenchOptions): Promise<Measurement[]>;
  report(measured: readonly Measurement[]): Report;
}

/** What was measured of one thing. @throws Error where it was not */
export function findMeasurement(measured: readonly Measurement[], what: string, of: string): Measurement {
  const found = measured.find((one) => one.what === what && one.of === of);
  if (found === undefined) throw new Error(`there is no "${what}" of ${of}`);
  return found;
}

/** A target for a quotient, told and judged only where the middle half of the rounds is of one opinion. */
export function ratioTarget(text: string, quotient: Ratio, bound: { atLeast?: number; atMost?: number }): Target {
  const verdictOn = (value: number) =>
    value >= (bound.atLeast ?? -Infinity) && value <= (bound.atMost ?? Infinity) ? 'met' : 'not met';
  const [low, high] = (quotient.middle ?? []).map(verdictOn);
  if (low !== undefined && low === high) return { text, measured: formatRatio(quotient), verdict: low };
  const range = (quotient.middle ?? []).map((end) => end.toFixed(2)).join(' to ');
  const why = range === '' ? 'fewer than 3 rounds' : `the machine was too busy: half of the rounds say ${range}`;
  return { text, measured: `– (${why})`, verdict: 'not measured' };
}

/** A target for a figure that is counted, or that is compared with nothing. */
export function absoluteTarget(text: string, value: number, unit: string, atMost: number, digits = 1): Target {
  return { text, measured: `${value.toFixed(digits)} ${unit}`.trim(), verdict: value <= atMost ? 'met' : 'not met' };
}

/**
 * Measures everything once a round, so that what disturbs the machine disturbs all of it; another one begins each round,
 * so that none always runs on a warmed-up machine.
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

/** Gathers figures by what and of what they are, in the order in which they come. */
export class MeasurementCollector {
  readonly #all = new Map<string, Measurement & { readonly values: number[] }>();

  add(what: string, of: string, unit: string, value: number, better: 'more' | 'less' = 'less'): void {
    const key = JSON.stringify([what, of]);
    const one = this.#all.get(key) ?? { what, of, unit, values: [], better };
    one.values.push(value);
    this.#all.set(key, one);
  }

  get all(): Measurement[] {
    return [...this.#all.values()];
  }
}
