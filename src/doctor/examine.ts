import { messageOf } from '../core/failure.ts';
import { systemTimers } from '../system/clock.ts';
import { checkAppliances } from './appliances.ts';
import { checkClock } from './clock.ts';
import { checkConfiguration } from './configuration.ts';
import { checkDisk } from './disk.ts';
import { type Finding, type Said, warn } from './finding.ts';
import { checkHooks } from './hooks.ts';
import { checkHub } from './hub.ts';
import { checkMdns } from './mdns.ts';
import { checkMetrics } from './metrics.ts';
import { checkNetwork } from './network.ts';
import { checkPortals } from './portals.ts';
import { checkPorts } from './ports.ts';
import { checkService } from './service.ts';
import { checkState } from './state.ts';
import { checkStore } from './store.ts';
import type { Subject } from './subject.ts';

const CHECKS: readonly (readonly [name: string, look: (subject: Subject) => Promise<Said[]>])[] = [
  ['configuration', checkConfiguration],
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
const PATIENCE = 5000;

/** Runs all checks side by side, each for five seconds at most; what they found is in a fixed order. */
export async function examine(subject: Subject): Promise<Finding[]> {
  const all = await Promise.all(
    CHECKS.map(async ([name, look]) => {
      const said = await Promise.race([attempt(look, subject), late()]);
      return said.map(({ name: of = '', result, detail }) => ({
        name: `${name}${of}`,
        result,
        detail: inOneLine(detail),
      }));
    }),
  );
  return all.flat();
}

/** A check that fails by itself says nothing of what it looks at. */
async function attempt(look: (subject: Subject) => Promise<Said[]>, subject: Subject): Promise<Said[]> {
  return look(subject).catch((error: unknown) => [warn(`this check could not be made: ${messageOf(error)}`)]);
}

async function late(): Promise<Said[]> {
  await systemTimers.sleep(PATIENCE);
  return [warn(`this check came to no end within ${PATIENCE / 1000} s, and was left`)];
}

function inOneLine(text: string): string {
  return text.replaceAll(/\s+/g, ' ').trim();
}
