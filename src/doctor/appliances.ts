import type { ApplianceAnswer } from '../control/messages.ts';
import { whatToDo } from '../core/reports/problem.ts';
import { fail, ok, type Said, warn } from './finding.ts';
import type { Subject } from './subject.ts';

/** How each appliance stands, as `status` has it. */
export async function checkAppliances({ hub }: Subject): Promise<Said[]> {
  if (hub.kind !== 'running')
    return [warn('the appliances are not known while the hub does not run, or may not be asked')];
  if (hub.appliances.length === 0) return [ok('there is none yet: "latchkey appliance add NAME"')];
  return hub.appliances.map(judge);
}

function judge(appliance: ApplianceAnswer): Said {
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
