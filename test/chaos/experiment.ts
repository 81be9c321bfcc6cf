import { SeededRandom } from '../support/seeded-random.ts';

/** How far an experiment goes: the short form runs with every test, the long one by itself. */
export interface ExperimentOptions {
  readonly long: boolean;
  /** The same seed makes the same choices; what the machine makes of them in time may differ. */
  readonly seed: number;
  /** Aborted where the run is to end early: an experiment that looks at it gives what it has found so far. */
  readonly signal: AbortSignal;
  /**
   * Tells how far it is.
   * @throws the signal's reason once it is aborted, so that an experiment that does not look at it is disposed of, too
   */
  progress(line: string): void;
}

/** The only figure of an experiment that could not be made here: why not. */
export const SKIPPED = 'left out';

/** What came of an experiment. */
export interface ExperimentResult {
  /** What was counted and measured, by its name with the unit, such as `grants lost` or `memory slope, kB/min`. */
  readonly figures: Readonly<Record<string, string | number>>;
  /** Promises that were broken, in one sentence each; empty in a good run. */
  readonly broken: readonly string[];
}

/** Several findings as one. */
export function mergeResults(findings: readonly ExperimentResult[]): ExperimentResult {
  return {
    figures: Object.assign({}, ...findings.map(({ figures }) => figures)),
    broken: findings.flatMap(({ broken }) => broken),
  };
}

/** The figures of a part of an experiment, under its name. */
export function prefixFigures(part: string, figures: ExperimentResult['figures']): ExperimentResult['figures'] {
  return Object.fromEntries(Object.entries(figures).map(([name, value]) => [`${part}: ${name}`, value]));
}

/** Notes what is not as promised. */
export class InvariantChecks {
  readonly broken: string[] = [];

  expect(kept: boolean, otherwise: string): void {
    if (!kept) this.broken.push(otherwise);
  }
}

/** One attempt to make the hub lose a grant, with the real daemon and emulator as processes. */
export interface Experiment {
  /** Short, in the words of docs/reliability.md. */
  readonly name: string;
  /** What is done to the hub, and what it promises all the same: one sentence. */
  readonly promise: string;
  run(scale: ExperimentOptions, random: SeededRandom): Promise<ExperimentResult>;
}

/** The short form, as the tests run it. */
export async function runShortForm({ run }: Experiment, seed = 1): Promise<ExperimentResult> {
  const { signal } = new AbortController();
  return run({ long: false, seed, signal, progress: () => undefined }, new SeededRandom(seed));
}
