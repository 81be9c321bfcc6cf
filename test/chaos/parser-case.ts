import fc from 'fast-check';
import { scaleDeadline } from '../support/deadlines.ts';
import type { ExperimentOptions } from './experiment.ts';

/** A parser with the inputs for it and a check of its result. */
export interface ParserCase<Input> {
  readonly name: string;
  readonly inputs: fc.Arbitrary<Input>;
  /** Parses an input. @returns what is wrong, or null; an exception counts as wrong, too */
  try(input: Input): string | null | Promise<string | null>;
}

/** An input that takes longer than this counts as a hang, in ms. */
const HANGS = scaleDeadline(10_000);

/**
 * Runs a parser on generated inputs.
 * @returns the number of inputs, and a text with the smallest failing input, or null
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

/** Searches a text for planted secrets. @returns what is wrong, or null */
export function findLeakedSecret(text: string, secrets: readonly string[]): string | null {
  const found = secrets.find((secret) => text.includes(secret));
  return found === undefined ? null : `a planted secret is revealed: ${text.slice(0, 300)}`;
}
