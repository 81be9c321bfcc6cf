import { HUB_PROBLEM_CODES } from '../reports/notice.ts';
import { PROBLEM_CODES } from '../reports/problem.ts';

/**
 * How grave a condition is, the gravest first. What is well has no condition.
 *
 * - `error`: something is broken, and stays so until a person acts;
 * - `warning`: something is amiss that may pass by itself, or a person is asked and nothing is broken until then;
 * - `info`: nothing is wrong, and an appliance gets no tokens before somebody has logged in for the first time.
 */
export const SEVERITIES = ['error', 'warning', 'info'] as const;
export type ConditionSeverity = (typeof SEVERITIES)[number];

/** The codes of conditions of the hub as a whole: its problems, and what others do to it. */
export const HUB_CONDITION_CODES = [...HUB_PROBLEM_CODES, 'wrong_setup_codes'] as const;
export type HubConditionCode = (typeof HUB_CONDITION_CODES)[number];

/** The codes of conditions of an appliance: the problems of its grant, and what it waits for. */
export const APPLIANCE_CONDITION_CODES = [
  ...PROBLEM_CODES,
  'credentials_untried',
  'portal_changed',
  'grant_damaged',
  'credentials_damaged',
  'without_credentials',
  'approval_needed',
  'pairing_failed',
  'login_open',
  'portal_awaited',
  'not_paired',
] as const;
export type ApplianceConditionCode = (typeof APPLIANCE_CONDITION_CODES)[number];

/** Something that is not as it should be: what every surface shows of the hub is made of these, and of nothing else. */
export type Condition = HubCondition | ApplianceCondition;

/** A condition of the hub as a whole. */
export interface HubCondition extends ConditionFields {
  readonly code: HubConditionCode;
  readonly appliance: null;
}

/** A condition of one appliance. */
export interface ApplianceCondition extends ConditionFields {
  readonly code: ApplianceConditionCode;
  /** Its name. */
  readonly appliance: string;
}

interface ConditionFields {
  readonly severity: ConditionSeverity;
  /** One sentence each, in English, without a full stop: what is wrong, and what to do. */
  readonly message: string;
  readonly what_to_do: string;
  /** RFC 3339 UTC; null where it did not begin at any time. */
  readonly since: string | null;
  /** RFC 3339 UTC: until when the appliance is served all the same; null where it is not, or nobody can know. */
  readonly until: string | null;
}

/** The conditions by whom they concern, each one's gravest first; null is the hub as a whole. */
export function groupByAppliance<One extends Pick<Condition, 'appliance'>>(
  conditions: readonly One[],
): ReadonlyMap<string | null, readonly One[]> {
  return Map.groupBy(conditions, ({ appliance }) => appliance);
}
