import type { Appliances } from '../broker/appliances.ts';
import type { Grants } from '../broker/grants.ts';
import type { Pairings } from '../broker/pairings.ts';
import { messageOf } from '../core/failure.ts';
import type { Log } from '../core/log.ts';

/**
 * Starts a pairing for every appliance that has neither a grant nor an open pairing, and puts the authorize URL into
 * the log: the way in for a hub that has no command line.
 */
export async function pairOnStart(appliances: Appliances, grants: Grants, pairings: Pairings, log: Log): Promise<void> {
  for (const appliance of appliances.list()) {
    if (grants.get(appliance.id) !== undefined) continue;
    const open = pairings.ofAppliance(appliance.id);
    const isOpen = open !== undefined && open.pairing.step.kind !== 'ended';
    const run = isOpen ? open : await pairings.begin(appliance).catch((error: unknown) => messageOf(error));
    if (typeof run === 'string') {
      log.warn('pairing could not be begun', { appliance: appliance.name, error: run });
      continue;
    }
    let told = '';
    const tell = () => {
      const { step } = run.pairing;
      if (step.kind !== 'waiting' || step.link.authorizeUrl === told) return;
      told = step.link.authorizeUrl;
      log.info('waiting for a login', { appliance: appliance.name, authorize_url: told });
    };
    run.watch(tell);
    tell();
  }
}
