import type { Appliances } from '../broker/appliances/appliances.ts';
import type { Grants } from '../broker/grants/grants.ts';
import type { Pairings } from '../broker/pairings/pairings.ts';
import { sameScope } from '../core/appliances/appliance.ts';
import { messageOf } from '../core/failure.ts';
import { hasScopeChanged } from '../core/grants/grant.ts';
import type { Log } from '../core/log.ts';
import { isInstallerInitiated, isStaleLink, linksOf, preferredLink } from '../core/pairings/pairing.ts';

/**
 * Starts a pairing for every appliance that has no open one, and no grant, or a grant for another scope than it is declared
 * with by now, and puts the authorize URL into the log: the way in for a hub that has no command line. A device flow that the
 * appliance has begun by itself is taken over. One that waits to be approved gets none, and neither does one whose grant rests
 * since its portal is not configured for it: that may be a slip, and a login would write over the grant.
 */
export async function pairOnStart(appliances: Appliances, grants: Grants, pairings: Pairings, log: Log): Promise<void> {
  for (const appliance of appliances.list()) {
    const grant = grants.get(appliance.id)?.grant;
    const isPaired = grant !== undefined && !hasScopeChanged(appliance, grant);
    if (isPaired || appliance.waitingSince !== null || grants.getSuspended(appliance.id) !== undefined) continue;
    const last = pairings.newestFor(appliance.id);
    const goesOn = last?.isOpen && sameScope(last.pairing.scope, appliance.scope) && isInstallerInitiated(last.pairing);
    const run = goesOn ? last : await pairings.begin(appliance).catch((error: unknown) => messageOf(error));
    if (typeof run === 'string') {
      log.warn('pairing_start_failed', { appliance: appliance.name, error: run });
      continue;
    }
    let told = '';
    const tell = () => {
      const { step } = run.pairing;
      if (step.kind !== 'waiting') return;
      // Further links are made for whoever opens the page of a device flow.
      const last = linksOf(step).find(({ authorizeUrl }) => authorizeUrl === told);
      if (last !== undefined && !isStaleLink(last, run.redirect)) return;
      const { authorizeUrl } = preferredLink(step, run.redirect) ?? step.link;
      if (authorizeUrl === told) return;
      told = authorizeUrl;
      log.info('login_link_created', { appliance: appliance.name, authorize_url: told });
    };
    run.watch(tell);
    tell();
  }
}
