import { InvariantBroken } from './lease-invariants.ts';
import { LeaseWorld } from './lease-world.ts';
import type { LeaseScenario } from './scenario.ts';

/** An execution that breaks an invariant. */
export interface CounterExample {
  readonly message: string;
  /** Its steps; those by which it comes to rest follow from them. */
  readonly steps: readonly string[];
}

/** What an exploration has seen. */
export interface ExplorationResult {
  readonly counterExample: CounterExample | null;
  readonly states: number;
  readonly executions: number;
  /** How many ends of executions there were with each exception. */
  readonly exceptions: Readonly<Record<string, number>>;
  /** Whether all states were visited. */
  readonly isComplete: boolean;
}

/** The longest time until everything has come to rest after the last fault, in lifetimes of access tokens. */
const MAX_REST_LIFETIMES = 4;
/** An execution that takes more steps than this to come to rest is stuck. */
const MAX_REST_STEPS = 500;

/** Visits every state that a scenario can reach, depth first. @param maxStates ends it early */
export async function explore(
  scenario: LeaseScenario,
  maxStates = Number.POSITIVE_INFINITY,
): Promise<ExplorationResult> {
  const visited = new Set<string>();
  const exceptions: Record<string, number> = {};
  const branches: (readonly string[])[] = [scenario.opening ?? []];
  let executions = 0;
  const result = (counterExample: CounterExample | null, isComplete: boolean) => ({
    counterExample,
    states: visited.size,
    executions,
    exceptions,
    isComplete,
  });
  for (let branch = branches.pop(); branch !== undefined; branch = branches.pop()) {
    if (visited.size >= maxStates) return result(null, false);
    executions += 1;
    const steps: string[] = [];
    try {
      const world = await LeaseWorld.start(scenario);
      for (const step of branch) {
        steps.push(step);
        await world.take(step);
      }
      for (;;) {
        const state = world.fingerprint();
        if (visited.has(state)) break;
        visited.add(state);
        const [next, ...others] = world.steps();
        for (const other of others) branches.push([...steps, other]);
        if (next === undefined) {
          await rest(world);
          for (const exception of world.invariants.exceptions) exceptions[exception] = (exceptions[exception] ?? 0) + 1;
          break;
        }
        steps.push(next);
        await world.take(next);
      }
    } catch (error) {
      if (!(error instanceof InvariantBroken)) throw error;
      return result({ message: error.message, steps }, false);
    }
  }
  return result(null, true);
}

/**
 * Makes one execution by a list of choices: each takes the step with this number, counted round, until the list ends or
 * nothing can happen any more. Then it comes to rest.
 * @returns null if no invariant is broken
 */
export async function execute(scenario: LeaseScenario, choices: readonly number[]): Promise<CounterExample | null> {
  const steps: string[] = [];
  try {
    const world = await LeaseWorld.start(scenario);
    for (const choice of choices) {
      const possible = world.steps();
      const next = possible[choice % possible.length];
      if (next === undefined) break;
      steps.push(next);
      await world.take(next);
    }
    await rest(world);
    return null;
  } catch (error) {
    if (!(error instanceof InvariantBroken)) throw error;
    return { message: error.message, steps };
  }
}

/** Nothing goes wrong any more: the grant is refreshed within a bounded time, or is known to be lost. */
async function rest(world: LeaseWorld): Promise<void> {
  world.calmDown();
  const { issued } = world.portal;
  const last = world.time + MAX_REST_LIFETIMES * world.scenario.lifetime;
  for (let count = 0; !world.invariants.isSettled(issued); count++) {
    const [next] = world.steps();
    if (next === undefined || count > MAX_REST_STEPS || world.time > last)
      throw new InvariantBroken(`the grant is not refreshed any more (after ${count} steps)`);
    await world.take(next);
  }
}
