import { messageOf } from '../core/failure.ts';
import { systemTimers } from '../system/clock.ts';
import { type CheckResult, type NamedCheckResult, warn } from './check-result.ts';
import { checkAppliances, checkHub } from './checks/hub.ts';
import { checkClock, checkDisk, checkService } from './checks/machine.ts';
import { checkMdns, checkNetwork } from './checks/network.ts';
import { checkPortals } from './checks/portals.ts';
import { checkPorts } from './checks/ports.ts';
import { checkHooks, checkMetrics } from './checks/reporting.ts';
import { checkConfiguration, checkCredentials, checkState, checkStore } from './checks/state.ts';
import { type DoctorContext, isTestMode } from './context.ts';

const CHECKS: readonly (readonly [name: string, look: (context: DoctorContext) => Promise<CheckResult[]>])[] = [
  ['configuration', checkConfiguration],
  ['credentials', checkCredentials],
  ['state', checkState],
  ['store', checkStore],
  ['disk', checkDisk],
  ['clock', checkClock],
  ['network', checkNetwork],
  ['hub', checkHub],
  ['service', checkService],
  ['ports', checkPorts],
  ['mdns', checkMdns],
  ['portal', checkPortals],
  ['notify', checkHooks],
  ['metrics', checkMetrics],
  ['appliance', checkAppliances],
];

/** How long a check may take, in ms. */
const CHECK_TIMEOUT = 5000;

/**
 * Runs all checks side by side, each for five seconds at most; what they found is in a fixed order. Of a hub in test mode,
 * which serves no home, nothing is a fault.
 */
export async function runChecks(context: DoctorContext): Promise<NamedCheckResult[]> {
  const isTried = isTestMode(context.hub);
  const all = await Promise.all(
    CHECKS.map(async ([name, look]) => {
      const said = await Promise.race([runCheck(look, context), checkTimedOut()]);
      return said.map(({ name: of = '', result, detail }) => ({
        name: `${name}${of}`,
        result: isTried && result === 'fail' ? 'warn' : result,
        detail: toSingleLine(detail),
      }));
    }),
  );
  return all.flat();
}

/** A check that fails by itself says nothing of what it looks at. */
async function runCheck(
  look: (context: DoctorContext) => Promise<CheckResult[]>,
  context: DoctorContext,
): Promise<CheckResult[]> {
  return look(context).catch((error: unknown) => [warn(`this check could not be made: ${messageOf(error)}`)]);
}

async function checkTimedOut(): Promise<CheckResult[]> {
  await systemTimers.sleep(CHECK_TIMEOUT);
  return [warn(`this check timed out after ${CHECK_TIMEOUT / 1000} s`)];
}

function toSingleLine(text: string): string {
  return text.replaceAll(/\s+/g, ' ').trim();
}
