import fc from 'fast-check';
import { scaleDeadline } from '../support/deadlines.ts';
import type { ExperimentOptions } from './experiment.ts';

/** A parser at work: what is given to it, and what must not come of it. */
export interface ParserCase<Input> {
  readonly name: string;
  readonly inputs: fc.Arbitrary<Input>;
  /** @returns what is wrong, or null; whatever it throws is wrong as well */
  try(input: Input): string | null | Promise<string | null>;
}

/** An input that takes longer than this hangs, in ms. */
const HANGS = scaleDeadline(10_000);

/**
 * Gives a parser so many inputs.
 * @returns how many it took, and the smallest input that was found to go wrong, in words
 */
export async function checkParser<Input>(
  trial: ParserCase<Input>,
  runs: number,
  { seed, signal }: Pick<ExperimentOptions, 'seed' | 'signal'>,
): Promise<{ readonly runs: number; readonly wrong: string | null }> {
  const property = fc.asyncProperty(trial.inputs, async (input) => {
    if (signal.aborted) return;
    const began = performance.now();
    const wrong = await trial.try(input);
    if (wrong !== null) throw new Error(wrong);
    const took = performance.now() - began;
    if (took > HANGS) throw new Error(`it took ${Math.round(took)} ms`);
  });
  const details = await fc.check(property, { seed, numRuns: runs });
  if (!details.failed) return { runs: details.numRuns, wrong: null };
  const [input] = details.counterexample ?? [];
  const why = details.errorInstance instanceof Error ? details.errorInstance.message : 'it failed';
  return { runs: details.numRuns, wrong: `${trial.name}: ${why}; the input: ${JSON.stringify(input)?.slice(0, 600)}` };
}

/** Looks for planted secrets in what is said. */
export function findLeakedSecret(said: string, secrets: readonly string[]): string | null {
  const found = secrets.find((secret) => said.includes(secret));
  return found === undefined ? null : `a planted secret is told: ${said.slice(0, 300)}`;
}
