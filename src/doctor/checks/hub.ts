import type { ApplianceAnswer } from '../../control/messages.ts';
import { whatToDo } from '../../core/reports/problem.ts';
import { version } from '../../system/version.ts';
import { type CheckResult, fail, ok, warn } from '../check-result.ts';
import { type DoctorContext, isTestMode } from '../context.ts';

/** Whether the hub runs, can be spoken to, and is of this version; and what it says is wrong with it as a whole. */
export async function checkHub({ hub: answer }: DoctorContext): Promise<CheckResult[]> {
  switch (answer.kind) {
    case 'not_running':
      return [fail(answer.detail)];
    case 'forbidden':
      return [warn(answer.detail)];
    case 'silent':
      return [
        fail(
          `the hub's control socket gives no answer (${answer.detail}): "sudo systemctl restart latchkey", or end it and start it again`,
        ),
      ];
    case 'running': {
      const { hub } = answer;
      // The checks of the store and of mDNS report their own problems.
      const [copy, claim] = (['hub_id_taken', 'hub_name_claimed'] as const).map((wanted) =>
        hub.problems?.find(({ code }) => code === wanted),
      );
      if (copy !== undefined) return [fail(copy.message)];
      if (claim !== undefined) return [warn(claim.message)];
      if (hub.version !== version()) {
        return [
          warn(
            `the running hub is version ${hub.version}, and this is ${version()}: restart it ("sudo systemctl restart latchkey")`,
          ),
        ];
      }
      const mode = isTestMode(answer) ? ' in test mode: it has an emulated portal, and keeps nothing' : '';
      return [ok(`${hub.name} (${hub.id}) runs${mode}, version ${hub.version}`)];
    }
  }
}

/** How each appliance stands, as `status` has it. */
export async function checkAppliances({ hub }: DoctorContext): Promise<CheckResult[]> {
  if (hub.kind !== 'running')
    return [warn('the appliances are not known while the hub does not run, or may not be asked')];
  if (hub.appliances.length === 0) return [ok('there is none yet: "latchkey appliance add NAME"')];
  return hub.appliances.map(judge);
}

function judge(appliance: ApplianceAnswer): CheckResult {
  const { name: who, state, problem } = appliance;
  const name = `.${who}`;
  if (appliance.waiting_for_approval !== undefined) {
    return warn(`${who} has introduced itself: "latchkey appliance approve ${who}", or remove it`, name);
  }
  if (appliance.credentials_damaged) {
    return fail(
      `the entry of ${who} in the store was damaged, or changed by something other than the hub: "latchkey appliance remove ${who}", add it again and pair it`,
      name,
    );
  }
  if (appliance.without_credentials) {
    return warn(`${who} has no credentials: "latchkey appliance rotate-secret ${who}", or remove it`, name);
  }
  if (problem !== null) {
    const what = `${who}: ${problem.message}: ${whatToDo(problem.code, who)}`;
    return state === 'needs_pairing' ? fail(what, name) : warn(what, name);
  }
  switch (state) {
    case 'needs_pairing':
      return fail(`${who} must be paired again: "latchkey pair ${who}"`, name);
    case 'unpaired':
      return warn(`${who} is not paired: "latchkey pair ${who}"`, name);
    case 'pairing':
      return ok(`${who} is being paired: log in through its link`, name);
    default:
      return ok(`${who} is ${state}`, name);
  }
}
