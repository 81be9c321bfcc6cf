import { HUB_PROBLEM_CODES } from '../reports/notice.ts';
import { PROBLEM_CODES } from '../reports/problem.ts';

/**
 * How severe a condition is, the most severe first. If all is well, there is no condition.
 *
 * - `error`: something is broken, and stays broken until a person acts;
 * - `warning`: a problem that may resolve itself, or something that a person is asked to do and that breaks nothing yet;
 * - `info`: nothing is wrong, but appliances get no tokens until somebody logs in for the first time, or the way in which
 *   an appliance uses its tokens is unusual.
 */
export const SEVERITIES = ['error', 'warning', 'info'] as const;
export type ConditionSeverity = (typeof SEVERITIES)[number];

/** The codes of conditions of the hub as a whole: its problems, and attempts to sign in with wrong setup codes. */
export const HUB_CONDITION_CODES = [...HUB_PROBLEM_CODES, 'wrong_setup_codes'] as const;
export type HubConditionCode = (typeof HUB_CONDITION_CODES)[number];

/** The codes of conditions of a connection: the problems of its grant, and what it waits for. */
export const CONNECTION_CONDITION_CODES = [
  ...PROBLEM_CODES,
  'credentials_untried',
  'portal_changed',
  'grant_damaged',
  'connection_damaged',
  'login_ending',
  'permissions_missing',
  'pairing_failed',
  'login_open',
  'portal_awaited',
  'not_paired',
] as const;
export type ConnectionConditionCode = (typeof CONNECTION_CONDITION_CODES)[number];

/** The codes of conditions that point out how an appliance uses its tokens. Its connection is fine. */
export const USAGE_CONDITION_CODES = ['appliance_silent', 'appliance_asks_often'] as const;

/** The codes of conditions of an appliance: its credentials, an approval that it waits for, and its usage. */
export const APPLIANCE_CONDITION_CODES = [
  'credentials_damaged',
  'without_credentials',
  'approval_needed',
  ...USAGE_CONDITION_CODES,
] as const;
export type ApplianceConditionCode = (typeof APPLIANCE_CONDITION_CODES)[number];

/**
 * One statement about the health of the hub, a connection or an appliance. Every surface derives the health that it
 * shows from conditions alone.
 */
export type Condition = HubCondition | ConnectionCondition | ApplianceCondition;

/** A condition of the hub as a whole. */
export interface HubCondition extends ConditionFields {
  readonly code: HubConditionCode;
  readonly connection: null;
  readonly appliance: null;
  readonly appliances: readonly [];
}

/** A condition of one connection, which concerns all appliances that use it. */
export interface ConnectionCondition extends ConditionFields {
  readonly code: ConnectionConditionCode;
  /** The connection's name. */
  readonly connection: string;
  /** The name of its only appliance, if that is the connection's name too; null otherwise. */
  readonly appliance: string | null;
  /** The names of all its appliances. */
  readonly appliances: readonly string[];
}

/** A condition of one appliance. */
export interface ApplianceCondition extends ConditionFields {
  readonly code: ApplianceConditionCode;
  /** The name of its connection. */
  readonly connection: string;
  /** The appliance's name. */
  readonly appliance: string;
  readonly appliances: readonly [string];
}

interface ConditionFields {
  readonly severity: ConditionSeverity;
  /** One sentence each, in English, without a full stop: what is wrong, and what to do. */
  readonly message: string;
  readonly what_to_do: string;
  /** RFC 3339 UTC; null if the condition has no beginning. */
  readonly since: string | null;
  /**
   * RFC 3339 UTC: until when appliances still get the current access token; null if they get none, or if that is
   * unknown.
   */
  readonly until: string | null;
}

/** Whether a condition only points out how an appliance uses its tokens. */
export function concernsUsage({ code }: Pick<Condition, 'code'>): boolean {
  return USAGE_CONDITION_CODES.some((one) => one === code);
}

/** Whether a condition or a notice concerns the hub as a whole. */
export function concernsHub<C extends Pick<Condition, 'connection'>>(one: C): one is C & { readonly connection: null } {
  return one.connection === null;
}

/**
 * Groups conditions by the names of the appliances that they concern, null for the hub as a whole. A condition of a shared
 * connection is in several groups. The order within a group does not change.
 */
export function groupByAppliance<C extends Pick<Condition, 'connection' | 'appliances'>>(
  conditions: readonly C[],
): ReadonlyMap<string | null, readonly C[]> {
  const groups = new Map<string | null, C[]>();
  for (const condition of conditions) {
    for (const name of concernsHub(condition) ? [null] : condition.appliances) {
      const group = groups.get(name);
      if (group === undefined) groups.set(name, [condition]);
      else group.push(condition);
    }
  }
  return groups;
}

/** The conditions of each connection by its name, without those of appliances. */
export function groupByConnection<C extends Pick<Condition, 'code' | 'connection'>>(
  conditions: readonly C[],
): ReadonlyMap<string | null, readonly C[]> {
  return Map.groupBy(
    conditions.filter(({ code }) => CONNECTION_CONDITION_CODES.some((one) => one === code)),
    ({ connection }) => connection,
  );
}
