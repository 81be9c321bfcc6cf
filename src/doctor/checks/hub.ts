import type { ConditionResponse } from '../../control/messages.ts';
import { type ConditionSeverity, groupByAppliance } from '../../core/health/condition.ts';
import { applyInstruction } from '../../core/portal.ts';
import { version } from '../../system/version.ts';
import { type CheckResult, fail, ok, warn } from '../check-result.ts';
import { type DoctorContext, isTestMode } from '../context.ts';

/** Whether the hub runs, can be spoken to, and is of this version; and what it says is wrong with it as a whole. */
export async function checkHub({ hub: answer, unit }: Pick<DoctorContext, 'hub' | 'unit'>): Promise<CheckResult[]> {
  const startAgain = applyInstruction({ appliedBy: (unit?.mainPid ?? 0) > 0 ? 'service_restart' : 'new_start' });
  switch (answer.kind) {
    case 'not_running':
      return [fail(answer.detail)];
    case 'forbidden':
      return [warn(answer.detail)];
    case 'silent':
      return [fail(`the hub's control socket gives no answer (${answer.detail}): ${startAgain}`)];
    case 'running': {
      const { hub, conditions } = answer;
      // The check of the store reports what is its own.
      const own =
        groupByAppliance(conditions)
          .get(null)
          ?.filter(({ code }) => !code.startsWith('store_')) ?? [];
      if (own.length > 0) return own.map((condition) => conditionResult(condition));
      if (hub.version !== version()) {
        return [warn(`the running hub is version ${hub.version}, and this is ${version()}: ${startAgain}`)];
      }
      const mode = isTestMode(answer) ? '; in test mode it has an emulated portal, and keeps nothing' : '';
      return [ok(`${hub.name} (${hub.id}) runs, version ${hub.version}${mode}`)];
    }
  }
}

/** How each appliance stands, as `status` has it. */
export async function checkAppliances({ hub }: DoctorContext): Promise<CheckResult[]> {
  if (hub.kind !== 'running')
    return [warn('the appliances are not known while the hub does not run, or may not be asked')];
  if (hub.appliances.length === 0) return [ok('there is none yet: "latchkey appliance add NAME"')];
  const conditions = groupByAppliance(hub.conditions);
  return hub.appliances.flatMap(({ name, state }) => {
    const own = conditions.get(name) ?? [];
    return own.length === 0
      ? ok(`${name} is ${state}`, `.${name}`)
      : own.map((one) => conditionResult(one, `.${name}`));
  });
}

const RESULTS = { error: fail, warning: warn, info: ok } as const satisfies Record<ConditionSeverity, typeof ok>;

/** What the running hub says is not as it should be. */
export function conditionResult({ severity, message, what_to_do }: ConditionResponse, name?: string): CheckResult {
  return RESULTS[severity](`${message}. ${what_to_do}`, name);
}
