import type { ApplianceState, ApplianceStatus } from '../core/administration.ts';
import type { ProblemCode } from '../core/reports/problem.ts';

/** An appliance that would get no token now; only the parts of its problem that anybody may read. */
interface UnreadyAppliance {
  readonly name: string;
  readonly state: ApplianceState;
  readonly problem: ProblemCode | null;
  /** RFC 3339 UTC; null where there is no problem. */
  readonly since: string | null;
}

/** Whether every grant can be served. */
export interface Readiness {
  readonly ready: boolean;
  readonly appliances: readonly UnreadyAppliance[];
}

/**
 * Tells whether every appliance that was paired would get a token: one at hand lives, or nothing is known to stand in the way of
 * a refresh. Those that were never paired wait for a person, and do not count.
 */
export function readiness(appliances: readonly ApplianceStatus[]): Readiness {
  const unserved = appliances.filter((appliance) => !canBeServed(appliance));
  return {
    ready: unserved.length === 0,
    appliances: unserved.map(({ name, state, problem }) => ({
      name,
      state,
      problem: problem?.code ?? null,
      since: problem?.since ?? null,
    })),
  };
}

function canBeServed({ state, expiresIn, problem }: ApplianceStatus): boolean {
  if (state === 'unpaired' || state === 'pairing' || state === 'active') return true;
  // What is left is handed out in whole seconds.
  if (expiresIn !== null && expiresIn >= 1) return true;
  // After a boot: an appliance that asks has it refreshed, and nothing says yet that this would fail.
  return problem?.code === 'clock_unknown';
}
