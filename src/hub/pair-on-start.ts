import type { Appliances } from '../broker/appliances/appliances.ts';
import type { Grants } from '../broker/grants/grants.ts';
import type { Pairings } from '../broker/pairings/pairings.ts';
import { sameScope } from '../core/appliances/appliance.ts';
import { messageOf } from '../core/failure.ts';
import { hasScopeChanged } from '../core/grants/grant.ts';
import type { Log } from '../core/log.ts';
import { isInstallerInitiated, isStaleLink, linksOf, preferredLink } from '../core/pairings/pairing.ts';

/**
 * Logs a login link for every appliance that has no grant, or a grant for another scope than it is now declared with.
 * Continues an installer's open pairing for that scope, takes over the appliance's open device flow, or else starts a
 * pairing. This is for hubs without a command line. Appliances that wait for approval are skipped. So are appliances
 * with a suspended grant: their portal may be missing from the configuration by mistake, and a login would overwrite
 * the grant.
 */
export async function pairOnStart(appliances: Appliances, grants: Grants, pairings: Pairings, log: Log): Promise<void> {
  for (const appliance of appliances.list()) {
    const grant = grants.get(appliance.id)?.grant;
    const isPaired = grant !== undefined && !hasScopeChanged(appliance, grant);
    if (isPaired || appliance.waitingSince !== null || grants.getSuspended(appliance.id) !== undefined) continue;
    const last = pairings.newestFor(appliance.id);
    const isReusable =
      last?.isOpen && sameScope(last.pairing.scope, appliance.scope) && isInstallerInitiated(last.pairing);
    const run = isReusable ? last : await pairings.begin(appliance).catch((error: unknown) => messageOf(error));
    if (typeof run === 'string') {
      log.warn('pairing_start_failed', { appliance: appliance.name, error: run });
      continue;
    }
    let logged = '';
    const logLink = () => {
      const { step } = run.pairing;
      if (step.kind !== 'waiting') return;
      // Opening the page of a device flow creates further links.
      const last = linksOf(step).find(({ authorizeUrl }) => authorizeUrl === logged);
      if (last !== undefined && !isStaleLink(last, run.redirect)) return;
      const { authorizeUrl } = preferredLink(step, run.redirect) ?? step.link;
      if (authorizeUrl === logged) return;
      logged = authorizeUrl;
      log.info('login_link_created', { appliance: appliance.name, authorize_url: logged });
    };
    run.watch(logLink);
    logLink();
  }
}
