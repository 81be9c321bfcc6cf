import { HUB_PROBLEM_CODES } from '../reports/notice.ts';
import { PROBLEM_CODES } from '../reports/problem.ts';

/**
 * How severe a condition is, the most severe first. If all is well, there is no condition.
 *
 * - `error`: something is broken, and stays broken until a person acts;
 * - `warning`: a problem that may resolve itself, or a question to a person that breaks nothing while it is open;
 * - `info`: nothing is wrong, but an appliance gets no tokens until somebody logs in for the first time.
 */
export const SEVERITIES = ['error', 'warning', 'info'] as const;
export type ConditionSeverity = (typeof SEVERITIES)[number];

/** The codes of conditions of the hub as a whole: its problems, and attempts to sign in with wrong setup codes. */
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

/**
 * One statement about the health of the hub or an appliance. Every surface derives the health that it shows from
 * conditions alone.
 */
export type Condition = HubCondition | ApplianceCondition;

/** A condition of the hub as a whole. */
export interface HubCondition extends ConditionFields {
  readonly code: HubConditionCode;
  readonly appliance: null;
}

/** A condition of one appliance. */
export interface ApplianceCondition extends ConditionFields {
  readonly code: ApplianceConditionCode;
  /** The appliance's name. */
  readonly appliance: string;
}

interface ConditionFields {
  readonly severity: ConditionSeverity;
  /** One sentence each, in English, without a full stop: what is wrong, and what to do. */
  readonly message: string;
  readonly what_to_do: string;
  /** RFC 3339 UTC; null if the condition has no beginning. */
  readonly since: string | null;
  /**
   * RFC 3339 UTC: until when the appliance still gets its current access token; null if it gets none, or if that is
   * unknown.
   */
  readonly until: string | null;
}

/** Groups conditions by the appliance's name, null for the hub as a whole. The order within a group does not change. */
export function groupByAppliance<C extends Pick<Condition, 'appliance'>>(
  conditions: readonly C[],
): ReadonlyMap<string | null, readonly C[]> {
  return Map.groupBy(conditions, ({ appliance }) => appliance);
}
