import type { ApplianceState, ApplianceStatus, HubProblem, HubStatus } from '../core/administration.ts';
import type { ProblemCode } from '../core/reports/problem.ts';

/** How an appliance is counted; what `status` calls unpaired may wait for an installer first. */
type Standing = ApplianceState | 'waiting_for_approval';

interface Words {
  readonly standing: Standing;
  readonly one: string;
  readonly more: string;
  /** Nothing gets better until a person sees to it: then it is said which ones. */
  readonly named?: true;
}

const STANDINGS: readonly Words[] = [
  { standing: 'active', one: 'active', more: 'active' },
  { standing: 'retrying', one: 'retrying', more: 'retrying' },
  { standing: 'pairing', one: 'pairing', more: 'pairing' },
  { standing: 'needs_pairing', one: 'needs pairing', more: 'need pairing', named: true },
  { standing: 'waiting_for_approval', one: 'waits for approval', more: 'wait for approval', named: true },
  { standing: 'unpaired', one: 'unpaired', more: 'unpaired' },
];

/** So many are named, and the others counted: it is one line. */
const MAX_NAMED = 3;

/** What is wrong with the hub, as far as that lasts. */
const HUB: Partial<Record<HubProblem['code'], string>> = {
  store_unwritable: "can't write its store",
  hub_id_taken: 'another hub on the network has its id',
  hub_name_claimed: 'another device on the network claims its name',
  not_announced: "can't be found by mDNS",
};

/** What keeps a grant waiting, for each portal once. */
const PORTAL: Partial<Record<ProblemCode, (portal: string) => string>> = {
  portal_unreachable: (portal) => `portal ${portal} out of reach`,
  portal_deferred: (portal) => `portal ${portal} asks to wait`,
  misconfigured: (portal) => `portal ${portal} refuses the hub's credentials`,
  clock_unknown: () => 'clock not confirmed',
};

type Counted = Pick<ApplianceStatus, 'name' | 'state' | 'problem' | 'portal' | 'waitingForApproval'>;

/** How the hub stands, in one line for the service manager: how its appliances are, and what it waits for. */
export function statusLine({
  hub,
  appliances,
}: {
  readonly hub: Pick<HubStatus, 'address' | 'problems'>;
  readonly appliances: readonly Counted[];
}): string {
  const waits = [
    hub.address === null ? 'waits for the network (no LAN address)' : undefined,
    ...(hub.problems ?? []).map(({ code }) => HUB[code]),
    ...appliances.map(({ problem, portal }) => problem && PORTAL[problem.code]?.(portal)),
  ].filter((wait) => typeof wait === 'string');
  return [countsOf(appliances), ...new Set(waits)].join('; ');
}

function countsOf(appliances: readonly Counted[]): string {
  const counts = STANDINGS.flatMap(({ standing, one, more, named }) => {
    const names = appliances.filter((appliance) => standingOf(appliance) === standing).map(({ name }) => name);
    if (names.length === 0) return [];
    return [`${names.length} ${names.length === 1 ? one : more}${named === true ? ` (${listed(names)})` : ''}`];
  });
  return counts.length === 0 ? 'no appliances yet' : counts.join(', ');
}

function standingOf({ state, waitingForApproval }: Counted): Standing {
  return waitingForApproval === undefined ? state : 'waiting_for_approval';
}

function listed(names: readonly string[]): string {
  const others = names.length - MAX_NAMED;
  return `${names.slice(0, MAX_NAMED).join(', ')}${others > 0 ? ` and ${others} more` : ''}`;
}
