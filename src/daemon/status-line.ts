import type { HubStatus, StatusReport } from '../core/administration.ts';
import type { ApplianceStatus } from '../core/appliances/appliance-status.ts';
import { type Condition, concernsHub, groupByAppliance, type HubConditionCode } from '../core/health/condition.ts';

/** The groups of appliances, in their order. Groups that need a person (they have a verb) also list the names. */
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

/** How many names a group lists before it counts the others, because this is a single line. */
const MAX_NAMED = 3;

const HUB_TEXTS: Record<HubConditionCode, string> = {
  store_unwritable: "can't write its store",
  store_changed: 'its store was damaged, or changed by something else',
  store_recovered: 'its store was damaged or missing, and rebuilt',
  store_volatile: 'nothing that it stores outlives a reboot',
  store_slow: 'its SD card or disk is slow, and may fail',
  certificate_expired: 'its certificate has expired',
  certificate_expiring: 'its certificate expires soon',
  hub_missing: 'another hub of the site is missing',
  hub_id_taken: 'another hub on the network has its id',
  hub_name_claimed: 'another device on the network claims its name',
  portal_moved: 'a portal has moved, which a person must confirm',
  database_unavailable: "can't reach the database of the site",
  not_announced: "can't be found by mDNS",
  wrong_setup_codes: 'wrong setup codes were entered',
};

/** Why grants wait. Each text appears once for each portal. */
const PORTAL_TEXTS: Partial<Record<Condition['code'], (portal: string) => string>> = {
  portal_unreachable: (portal) => `portal ${portal} unreachable`,
  portal_deferred: (portal) => `portal ${portal} asked the hub to wait`,
  misconfigured: (portal) => `portal ${portal} refuses the hub's credentials`,
  clock_unknown: () => 'clock not confirmed',
  portal_changed: (portal) => `portal ${portal} is not the portal of the pairing`,
};

type CountedAppliance = Pick<ApplianceStatus, 'name' | 'portal'> & { readonly conditions: readonly Condition[] };

/** The hub's status in one line for the service manager: counts of its appliances, and what the hub waits for. */
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
  const problems = [
    ...(hub.address === null ? ['waiting for the network (no LAN address)'] : []),
    ...conditions.flatMap((one) => (concernsHub(one) ? HUB_TEXTS[one.code] : [])),
    ...counted.flatMap(({ portal, conditions: own }) => own.flatMap(({ code }) => PORTAL_TEXTS[code]?.(portal) ?? [])),
  ];
  return [formatCounts(counted), ...new Set(problems)].join('; ');
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

/** The group is decided by the most severe condition, which comes first. */
function groupOf([worst]: readonly Condition[]): (typeof GROUPS)[number] {
  switch (worst?.code) {
    case undefined:
    case 'appliance_silent':
    case 'appliance_asks_often':
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
      return worst?.severity === 'info' ? 'unpaired' : 'needs attention';
    case 'without_credentials':
    case 'login_ending':
    case 'permissions_missing':
      return 'needs attention';
    default:
      return worst?.severity === 'error' ? 'needs attention' : 'retrying';
  }
}

function formatNames(names: readonly string[]): string {
  const others = names.length - MAX_NAMED;
  return `${names.slice(0, MAX_NAMED).join(', ')}${others > 0 ? ` and ${others} more` : ''}`;
}
