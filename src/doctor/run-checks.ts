import { messageOf } from '../core/failure.ts';
import { systemTimers } from '../system/clock.ts';
import { type CheckResults, type NamedCheckResult, warn } from './check-result.ts';
import { checkCertificate } from './checks/certificate.ts';
import { checkDatabase } from './checks/database.ts';
import { checkAppliances, checkConnections, checkHub } from './checks/hub.ts';
import { checkClock, checkDisk, checkService } from './checks/machine.ts';
import { checkMdns, checkNetwork } from './checks/network.ts';
import { checkPortals } from './checks/portals.ts';
import { checkPorts } from './checks/ports.ts';
import { checkHooks, checkMetrics } from './checks/reporting.ts';
import { checkConfiguration, checkCredentials, checkState, checkStore } from './checks/state.ts';
import { type DoctorContext, isTestMode } from './context.ts';

type Check = (context: DoctorContext) => Promise<CheckResults>;

const CHECKS: readonly (readonly [name: string, check: Check])[] = [
  ['configuration', checkConfiguration],
  ['credentials', checkCredentials],
  ['state', checkState],
  ['store', checkStore],
  ['database', checkDatabase],
  ['disk', checkDisk],
  ['clock', checkClock],
  ['network', checkNetwork],
  ['hub', checkHub],
  ['service', checkService],
  ['ports', checkPorts],
  ['certificate', checkCertificate],
  ['mdns', checkMdns],
  ['portal', checkPortals],
  ['notify', checkHooks],
  ['metrics', checkMetrics],
  ['connection', checkConnections],
  ['appliance', checkAppliances],
];

/** How long a check may take, in ms. */
const CHECK_TIMEOUT = 5000;

/**
 * Runs all checks concurrently, each for at most five seconds; the results are in a fixed order. For a hub in test
 * mode, which serves no home, failures are only warnings.
 */
export async function runChecks(context: DoctorContext): Promise<NamedCheckResult[]> {
  const testMode = isTestMode(context.hub);
  const all = await Promise.all(
    CHECKS.map(async ([name, check]) => {
      const results = await Promise.race([runCheck(check, context), checkTimedOut()]);
      return [results].flat().map(({ name: suffix = '', result, detail }) => ({
        name: `${name}${suffix}`,
        result: testMode && result === 'fail' ? 'warn' : result,
        detail: toSingleLine(detail),
      }));
    }),
  );
  return all.flat();
}

/** An error of the check itself is only a warning: it says nothing about what is checked. */
async function runCheck(check: Check, context: DoctorContext): Promise<CheckResults> {
  return check(context).catch((error: unknown) => [warn(`this check could not be performed: ${messageOf(error)}`)]);
}

async function checkTimedOut(): Promise<CheckResults> {
  await systemTimers.sleep(CHECK_TIMEOUT);
  return [warn(`this check timed out after ${CHECK_TIMEOUT / 1000} s`)];
}

function toSingleLine(text: string): string {
  return text.replaceAll(/\s+/g, ' ').trim();
}
