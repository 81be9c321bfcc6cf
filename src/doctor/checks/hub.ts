import type { ConditionResponse, ConnectionResponse, StatusResponse } from '../../control/messages.ts';
import { groupByAppliance, groupByConnection } from '../../core/health/condition.ts';
import type { ConditionSeverity } from '../../core/health/condition-record.ts';
import { howToApplyCorrection } from '../../core/portals/identity.ts';
import { version } from '../../system/version.ts';
import { type CheckResult, type CheckResults, fail, ok, warn } from '../check-result.ts';
import { type DoctorContext, isTestMode } from '../context.ts';

/** Checks whether the hub runs, responds and has this version; reports its own conditions. */
export async function checkHub({ hub: probe, unit }: Pick<DoctorContext, 'hub' | 'unit'>): Promise<CheckResults> {
  const restart = howToApplyCorrection({ appliedBy: (unit?.mainPid ?? 0) > 0 ? 'service_restart' : 'new_start' });
  switch (probe.kind) {
    case 'not_running':
      return fail(probe.detail);
    case 'forbidden':
      return warn(probe.detail);
    case 'silent':
      return fail(`the hub does not respond on its control socket (${probe.detail}): ${restart}`);
    case 'running': {
      const { hub, conditions } = probe;
      // The check of the store reports the conditions of the store.
      const own =
        groupByAppliance(conditions)
          .get(null)
          ?.filter(({ code }) => !code.startsWith('store_')) ?? [];
      if (own.length > 0) return own.map((condition) => conditionResult(condition));
      if (hub.version !== version()) {
        return warn(`the running hub has version ${hub.version}, this command has ${version()}: ${restart}`);
      }
      const mode = isTestMode(probe) ? '; it is in test mode, with an emulated portal, and stores nothing' : '';
      return ok(`${hub.name} (${hub.id}) is running, version ${hub.version}${mode}`);
    }
  }
}

/** Reports the state and the conditions of each appliance, as `status` shows them. */
export async function checkAppliances({ hub }: DoctorContext): Promise<CheckResults> {
  if (hub.kind !== 'running')
    return warn('the appliances are unknown, because the hub is not running or this user has no access to it');
  if (hub.appliances.length === 0) return ok('there is no appliance yet: "latchkey appliance add NAME"');
  const conditions = groupByAppliance(hub.conditions);
  const shared = new Set(sharedConnections(hub).map(({ name }) => name));
  return hub.appliances.flatMap(({ name, state, connection }) => {
    // The check of the connections reports what concerns a shared connection.
    const own = (conditions.get(name) ?? []).filter(({ appliance }) => appliance !== null);
    if (own.length > 0) return own.map((condition) => conditionResult(condition, `.${name}`));
    return ok(shared.has(connection) ? `${name} uses the connection ${connection}` : `${name} is ${state}`, `.${name}`);
  });
}

/** Reports the state and the conditions of each shared connection, as `status` shows them. */
export async function checkConnections({ hub }: DoctorContext): Promise<CheckResults> {
  if (hub.kind !== 'running') return [];
  const conditions = groupByConnection(hub.conditions);
  return sharedConnections(hub).flatMap(({ name, state }) => {
    const own = conditions.get(name) ?? [];
    return own.length === 0
      ? ok(`${name} is ${state}`, `.${name}`)
      : own.map((condition) => conditionResult(condition, `.${name}`));
  });
}

/** The connections that are not the own connection of one appliance. */
function sharedConnections({ connections }: Pick<StatusResponse, 'connections'>): ConnectionResponse[] {
  return connections.filter(({ own }) => own !== true);
}

const RESULTS = { error: fail, warning: warn, info: ok } as const satisfies Record<ConditionSeverity, typeof ok>;

/** The check result for a condition that the running hub reports. */
export function conditionResult({ severity, message, what_to_do }: ConditionResponse, name?: string): CheckResult {
  return RESULTS[severity](`${message}. ${what_to_do}`, name);
}
