import assert from 'node:assert/strict';
import { SeededRandom } from '../support/seeded-random.ts';

/** The options of a run. The short form runs with the tests, the long form with scripts/chaos. */
export interface ExperimentOptions {
  readonly long: boolean;
  /** The duration of the soak; undefined for the usual one. */
  readonly minutes?: number | undefined;
  /** The same seed makes the same choices; their timing may differ. */
  readonly seed: number;
  /** Aborted if the run must end early. An experiment that checks it returns its results so far. */
  readonly signal: AbortSignal;
  /**
   * Reports progress.
   * @throws the signal's reason if it is aborted, so that an experiment that does not check it ends, too
   */
  progress(line: string): void;
}

/** The only figure of an experiment that this machine cannot run: its value is the reason. */
export const SKIPPED = 'skipped';

/** The result of an experiment. */
export interface ExperimentResult {
  /** Counts and measurements. Names include the unit, such as `grants lost` or `heap slope, kB/min`. */
  readonly figures: Readonly<Record<string, string | number>>;
  /** Broken promises, one sentence each; empty in a good run. */
  readonly broken: readonly string[];
}

/** Combines several results into one. */
export function mergeResults(findings: readonly ExperimentResult[]): ExperimentResult {
  return {
    figures: Object.assign({}, ...findings.map(({ figures }) => figures)),
    broken: findings.flatMap(({ broken }) => broken),
  };
}

/** The figures of a part of an experiment, with the part's name as prefix. */
export function prefixFigures(part: string, figures: ExperimentResult['figures']): ExperimentResult['figures'] {
  return Object.fromEntries(Object.entries(figures).map(([name, value]) => [`${part}: ${name}`, value]));
}

/** Collects broken promises. */
export class InvariantChecks {
  readonly broken: string[] = [];

  expect(holds: boolean, otherwise: string): void {
    if (!holds) this.broken.push(otherwise);
  }
}

/** One attempt to make the hub lose a grant, with the real daemon and emulator as processes. */
export interface Experiment {
  /** A short name. */
  readonly name: string;
  /** What happens to the hub, and what it promises nevertheless: one sentence. */
  readonly promise: string;
  run(scale: ExperimentOptions, random: SeededRandom): Promise<ExperimentResult>;
}

/** Runs the short form, as the tests do. @throws {AssertionError} if a promise was broken */
export async function runShortForm({ run }: Experiment, seed = 1): Promise<ExperimentResult['figures']> {
  const { signal } = new AbortController();
  const { figures, broken } = await run(
    { long: false, seed, signal, progress: () => undefined },
    new SeededRandom(seed),
  );
  assert.deepEqual(broken, []);
  return figures;
}
