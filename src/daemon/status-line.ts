import type { ApplianceStatus, HubStatus, StatusReport } from '../core/administration.ts';
import { type Condition, groupByAppliance, type HubConditionCode } from '../core/health/condition.ts';

/** How appliances are counted, in the order in which they are told. Those that somebody has to see to (a verb says so) are named. */
const GROUPS = [
  'active',
  'retrying',
  'pairing',
  'needs pairing',
  'needs attention',
  'waits for approval',
  'unpaired',
] as const;
const ATTENTION_VERB = /^(need|wait)s /;

/** So many are named, and the others counted: it is one line. */
const MAX_NAMED = 3;

const HUB_TEXTS: Record<HubConditionCode, string> = {
  store_unwritable: "can't write its store",
  store_changed: 'its store was damaged, or changed by something else',
  store_recovered: 'its store was damaged and repaired',
  hub_id_taken: 'another hub on the network has its id',
  hub_name_claimed: 'another device on the network claims its name',
  not_announced: "can't be found by mDNS",
  wrong_setup_codes: 'somebody types wrong setup codes',
};

/** What keeps a grant waiting, for each portal once. */
const PORTAL_TEXTS: Partial<Record<Condition['code'], (portal: string) => string>> = {
  portal_unreachable: (portal) => `portal ${portal} not reached`,
  portal_deferred: (portal) => `portal ${portal} asks to wait`,
  misconfigured: (portal) => `portal ${portal} refuses the hub's credentials`,
  clock_unknown: () => 'clock not confirmed',
  portal_changed: (portal) => `portal ${portal} is not the one of the pairing`,
};

type CountedAppliance = Pick<ApplianceStatus, 'name' | 'portal'> & { readonly conditions: readonly Condition[] };

/** How the hub stands, in one line for the service manager: how its appliances are, and what it waits for. */
export function statusLine({
  hub,
  appliances,
  conditions,
}: Pick<StatusReport, 'conditions'> & {
  readonly hub: Pick<HubStatus, 'address'>;
  readonly appliances: readonly Pick<ApplianceStatus, 'name' | 'portal'>[];
}): string {
  const found = groupByAppliance(conditions);
  const counted = appliances.map(({ name, portal }) => ({ name, portal, conditions: found.get(name) ?? [] }));
  const waits = [
    ...(hub.address === null ? ['waits for the network (no LAN address)'] : []),
    ...conditions.flatMap((one) => (one.appliance === null ? HUB_TEXTS[one.code] : [])),
    ...counted.flatMap(({ portal, conditions: own }) => own.flatMap(({ code }) => PORTAL_TEXTS[code]?.(portal) ?? [])),
  ];
  return [formatCounts(counted), ...new Set(waits)].join('; ');
}

function formatCounts(appliances: readonly CountedAppliance[]): string {
  const counts = GROUPS.flatMap((kind) => {
    const names = appliances.filter(({ conditions }) => groupOf(conditions) === kind).map(({ name }) => name);
    if (names.length === 0) return [];
    const words = names.length === 1 ? kind : kind.replace(ATTENTION_VERB, '$1 ');
    return [`${names.length} ${words}${ATTENTION_VERB.test(kind) ? ` (${formatNames(names)})` : ''}`];
  });
  return counts.length === 0 ? 'no appliances yet' : counts.join(', ');
}

/** By the gravest condition. */
function groupOf([gravest]: readonly Condition[]): (typeof GROUPS)[number] {
  switch (gravest?.code) {
    case undefined:
      return 'active';
    case 'refused':
    case 'grant_damaged':
      return 'needs pairing';
    case 'approval_needed':
      return 'waits for approval';
    case 'login_open':
    case 'portal_awaited':
      return 'pairing';
    case 'not_paired':
      return 'unpaired';
    case 'pairing_failed':
      return gravest?.severity === 'info' ? 'unpaired' : 'needs attention';
    case 'without_credentials':
      return 'needs attention';
    default:
      return gravest?.severity === 'error' ? 'needs attention' : 'retrying';
  }
}

function formatNames(names: readonly string[]): string {
  const others = names.length - MAX_NAMED;
  return `${names.slice(0, MAX_NAMED).join(', ')}${others > 0 ? ` and ${others} more` : ''}`;
}
