import type { ApplianceStatus } from '../core/appliances/appliance-status.ts';
import type { ConnectionState } from '../core/connections/connection-status.ts';
import type { ProblemCode } from '../core/reports/problem.ts';

/** An appliance that would get no token now, with only those parts of its problem that are public. */
interface UnreadyAppliance {
  readonly name: string;
  readonly connection: string;
  readonly state: ConnectionState;
  readonly problem: ProblemCode | null;
  /** RFC 3339 UTC; null if there is no problem. */
  readonly since: string | null;
}

/** Whether every grant can be served. */
interface Readiness {
  readonly ready: boolean;
  readonly appliances: readonly UnreadyAppliance[];
}

/**
 * Whether every appliance of a paired connection would get a token: its access token has not expired, or no known
 * problem prevents a refresh. Connections that were never paired wait for a person; neither they nor connections without
 * appliances count.
 */
export function readiness(appliances: readonly ApplianceStatus[]): Readiness {
  const unserved = appliances.filter((appliance) => !canBeServed(appliance));
  return {
    ready: unserved.length === 0,
    appliances: unserved.map(({ name, connection, state, problem }) => ({
      name,
      connection,
      state,
      problem: problem?.code ?? null,
      since: problem?.since ?? null,
    })),
  };
}

function canBeServed({ state, expiresIn, problem }: ApplianceStatus): boolean {
  if (state === 'unpaired' || state === 'pairing' || state === 'active') return true;
  // A token is issued with its remaining lifetime in whole seconds.
  if (expiresIn !== null && expiresIn >= 1) return true;
  // After a boot: a token request starts a refresh, and nothing indicates yet that it would fail.
  return problem?.code === 'clock_unknown';
}
