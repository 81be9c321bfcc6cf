import { APPLIANCE_CONDITIONS, type ApplianceConditionCode } from './appliance-conditions.ts';
import type { ConditionGroup, ConditionSeverity, SubjectConditionRecord } from './condition-record.ts';
import { CONNECTION_CONDITIONS, type ConnectionConditionCode } from './connection-conditions.ts';
import type { HubConditionCode } from './hub-conditions.ts';

/**
 * One statement about the health of the hub, a connection or an appliance. Every surface derives the health that it
 * shows from conditions alone.
 */
export type Condition = HubCondition | SubjectCondition;

/** A condition of a connection or an appliance. */
export type SubjectCondition = ConnectionCondition | ApplianceCondition;

/** A condition of the hub as a whole. */
export interface HubCondition extends ConditionFields {
  readonly code: HubConditionCode;
  readonly severity: 'error' | 'warning';
  readonly since: string;
  /** The IP address of the device that causes it; left out if it is unknown, or if no device does. */
  readonly address?: string;
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

const subjectConditions: Readonly<Record<SubjectCondition['code'], SubjectConditionRecord>> = {
  ...CONNECTION_CONDITIONS,
  ...APPLIANCE_CONDITIONS,
};

/** What is the same for every condition of a connection or an appliance with this code. */
export function subjectRecord(code: SubjectCondition['code']): SubjectConditionRecord {
  return subjectConditions[code];
}

/** How surfaces count an appliance whose most severe condition this is. */
export function groupOf({ code, severity }: Pick<SubjectCondition, 'code' | 'severity'>): ConditionGroup {
  const { group } = subjectRecord(code);
  if (group !== 'needs attention' || severity !== 'info') return group;
  // A pairing that a person has ended needs no attention, and neither does an appliance that is being set up.
  return code === 'pairing_failed' ? 'unpaired' : 'active';
}

/** Whether a condition is about an appliance, and not about its connection. */
export function isOfAppliance({ code }: Pick<Condition, 'code'>): boolean {
  return code in APPLIANCE_CONDITIONS;
}

/** Whether a condition only points something out, and all is well. */
export function isHarmless(condition: Condition): boolean {
  return !concernsHub(condition) && subjectRecord(condition.code).isHarmless === true;
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
    conditions.filter(({ code }) => code in CONNECTION_CONDITIONS),
    ({ connection }) => connection,
  );
}

/** The conditions of each appliance by its name, without those of its connection. */
export function groupOfAppliances(
  conditions: readonly Condition[],
): ReadonlyMap<string, readonly ApplianceCondition[]> {
  return Map.groupBy(
    conditions.filter((one): one is ApplianceCondition => isOfAppliance(one)),
    ({ appliance }) => appliance,
  );
}
