import type { ApplianceState, ApplianceStatus, HubProblem, HubStatus } from '../core/administration.ts';
import type { ProblemCode } from '../core/problem.ts';

const STATES: readonly (readonly [state: ApplianceState, one: string, more: string])[] = [
  ['active', 'active', 'active'],
  ['retrying', 'retrying', 'retrying'],
  ['pairing', 'pairing', 'pairing'],
  ['needs_pairing', 'needs pairing', 'need pairing'],
  ['unpaired', 'unpaired', 'unpaired'],
];

/** What is wrong with the hub, as far as that lasts. */
const HUB: Partial<Record<HubProblem['code'], string>> = {
  store_unwritable: "can't write its store",
  hub_id_taken: 'another hub on the network has its id',
  not_announced: "can't be found by mDNS",
};

/** What keeps a grant waiting, for each portal once. */
const PORTAL: Partial<Record<ProblemCode, (portal: string) => string>> = {
  portal_unreachable: (portal) => `portal ${portal} out of reach`,
  portal_deferred: (portal) => `portal ${portal} asks to wait`,
  misconfigured: (portal) => `portal ${portal} refuses the hub's credentials`,
  clock_unknown: () => 'clock not confirmed',
};

/** How the hub stands, in one line for the service manager: how its appliances are, and what it waits for. */
export function statusLine({
  hub,
  appliances,
}: {
  readonly hub: Pick<HubStatus, 'address' | 'problems'>;
  readonly appliances: readonly Pick<ApplianceStatus, 'state' | 'problem' | 'portal'>[];
}): string {
  const waits = [
    hub.address === null ? 'waits for the network (no LAN address)' : undefined,
    ...(hub.problems ?? []).map(({ code }) => HUB[code]),
    ...appliances.map(({ problem, portal }) => problem && PORTAL[problem.code]?.(portal)),
  ].filter((wait) => typeof wait === 'string');
  return [countsOf(appliances), ...new Set(waits)].join('; ');
}

function countsOf(appliances: readonly Pick<ApplianceStatus, 'state'>[]): string {
  const counts = STATES.flatMap(([state, one, more]) => {
    const count = appliances.filter((appliance) => appliance.state === state).length;
    return count === 0 ? [] : [`${count} ${count === 1 ? one : more}`];
  });
  return counts.length === 0 ? 'no appliances yet' : counts.join(', ');
}
