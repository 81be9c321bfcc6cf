import { formatRatio, type Ratio } from './statistics.ts';

/** The raw values of one measurement, as in the JSON file. All tables are made from them. */
export interface Measurement {
  /** What was measured, as in the head of a table: `keep-alive: requests`. */
  readonly what: string;
  /** The subject: `latchkey`, `latchkey at 1a2b3c4`, or one of its peers. */
  readonly of: string;
  /** `1/s`, `ms`, `µs`, `MB`, `kB`, `%`, or what is counted. */
  readonly unit: string;
  /** One value per round, in the order of the rounds. All subjects are measured in the same rounds. */
  readonly values: readonly number[];
  readonly better: 'more' | 'less';
}

/** A checkout of Latchkey whose build (`dist/`) is measured. */
export interface BenchSubject {
  /** `latchkey`, or `latchkey at 1a2b3c4` for the revision that it is compared with. */
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
  readonly programs: Readonly<Record<string, string>>;
  /** Why the suite can't run here, if that is not a program on PATH; null if it can. Left out: it can. */
  skipReason?(): string | null;
  measure(bench: BenchOptions): Promise<Measurement[]>;
  report(measured: readonly Measurement[]): Report;
}

/** Finds the measurement of one subject. @throws Error if there is none */
export function findMeasurement(measured: readonly Measurement[], what: string, of: string): Measurement {
  const found = measured.find((one) => one.what === what && one.of === of);
  if (found === undefined) throw new Error(`there is no "${what}" of ${of}`);
  return found;
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

/**
 * Measures every subject once per round, so that a disturbance of the machine affects all of them. A different subject
 * is first in each round, so that none always runs on a warmed-up machine.
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

/** Collects values by measurement and subject, in the order of their arrival. */
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
