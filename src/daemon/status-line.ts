import type { HubStatus, StatusReport } from '../core/administration.ts';
import type { ApplianceStatus } from '../core/appliances/appliance-status.ts';
import {
  concernsHub,
  groupByAppliance,
  groupOf,
  type SubjectCondition,
  subjectRecord,
} from '../core/health/condition.ts';
import { type ConditionGroup, GROUPS } from '../core/health/condition-record.ts';
import { HUB_CONDITIONS } from '../core/health/hub-conditions.ts';

/** Groups that need a person (they have a verb) also list the names. */
const ATTENTION_VERB = /^(need|wait)s /;

/** How many names a group lists before it counts the others, because this is a single line. */
const MAX_NAMED = 3;

type CountedAppliance = Pick<ApplianceStatus, 'name' | 'portal'> & { readonly conditions: readonly SubjectCondition[] };

/** The hub's status in one line for the service manager: counts of its appliances, and what the hub waits for. */
export function statusLine({
  hub,
  appliances,
  conditions,
}: Pick<StatusReport, 'conditions'> & {
  readonly hub: Pick<HubStatus, 'address'>;
  readonly appliances: readonly Pick<ApplianceStatus, 'name' | 'portal'>[];
}): string {
  const found = groupByAppliance(conditions.filter((one): one is SubjectCondition => !concernsHub(one)));
  const counted = appliances.map(({ name, portal }) => ({ name, portal, conditions: found.get(name) ?? [] }));
  const problems = [
    ...(hub.address === null ? ['waiting for the network (no LAN address)'] : []),
    ...conditions.flatMap((one) => (concernsHub(one) ? HUB_CONDITIONS[one.code].statusLine : [])),
    ...counted.flatMap(({ portal, conditions: own }) =>
      own.flatMap(({ code }) => subjectRecord(code).statusLine?.(portal) ?? []),
    ),
  ];
  return [formatCounts(counted), ...new Set(problems)].join('; ');
}

function formatCounts(appliances: readonly CountedAppliance[]): string {
  const counts = GROUPS.flatMap((kind) => {
    const names = appliances.filter((one) => countedGroup(one) === kind).map(({ name }) => name);
    if (names.length === 0) return [];
    const words = names.length === 1 ? kind : kind.replace(ATTENTION_VERB, '$1 ');
    return [`${names.length} ${words}${ATTENTION_VERB.test(kind) ? ` (${formatNames(names)})` : ''}`];
  });
  return counts.length === 0 ? 'no appliances yet' : counts.join(', ');
}

/** The group is decided by the most severe condition, which comes first. */
function countedGroup({ conditions: [worst] }: CountedAppliance): ConditionGroup {
  return worst === undefined ? 'active' : groupOf(worst);
}

function formatNames(names: readonly string[]): string {
  const others = names.length - MAX_NAMED;
  return `${names.slice(0, MAX_NAMED).join(', ')}${others > 0 ? ` and ${others} more` : ''}`;
}
