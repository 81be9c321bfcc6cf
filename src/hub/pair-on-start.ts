import type { Appliances } from '../broker/appliances/appliances.ts';
import type { Connections } from '../broker/connections/connections.ts';
import type { Grants } from '../broker/grants/grants.ts';
import type { Pairings } from '../broker/pairings/pairings.ts';
import { sameScope } from '../core/connections/scope.ts';
import { messageOf } from '../core/failure.ts';
import { hasScopeChanged } from '../core/grants/grant.ts';
import type { Log } from '../core/log.ts';
import { isInstallerInitiated, isStaleLink, linksOf, preferredLink } from '../core/pairings/pairing.ts';

/**
 * Logs a login link for every connection that has no grant, or a grant for another scope than it is now declared with.
 * Continues an installer's open pairing for that scope, takes over its open device flow, or else starts a
 * pairing. This is for hubs without a command line. Connections whose appliance waits for approval are skipped. So are
 * those with a suspended grant: their portal may be missing from the configuration by mistake, and a login would overwrite
 * the grant.
 */
export async function pairOnStart(
  connections: Connections,
  appliances: Appliances,
  grants: Grants,
  pairings: Pairings,
  log: Log,
): Promise<void> {
  for (const connection of connections.list()) {
    const grant = grants.get(connection.id)?.grant;
    const isPaired = grant !== undefined && !hasScopeChanged(connection, grant);
    if (isPaired || appliances.waitForApproval(connection.id) || grants.getSuspended(connection.id) !== undefined)
      continue;
    const last = pairings.newestFor(connection.id);
    const isReusable =
      last?.isOpen && sameScope(last.pairing.scope, connection.scope) && isInstallerInitiated(last.pairing);
    const run = isReusable
      ? last
      : await pairings.begin(connection, { by: 'on_start' }).catch((error: unknown) => messageOf(error));
    if (typeof run === 'string') {
      log.warn('pairing_start_failed', { connection: connection.name, error: run });
      continue;
    }
    let logged = '';
    const logLink = () => {
      const { step } = run.pairing;
      if (step.kind !== 'waiting') return;
      // Opening the page of a device flow creates further links.
      const last = linksOf(step).find(({ authorizeUrl }) => authorizeUrl === logged);
      if (last !== undefined && !isStaleLink(last, run.runner.redirect)) return;
      const { authorizeUrl } = preferredLink(step, run.runner.redirect) ?? step.link;
      if (authorizeUrl === logged) return;
      logged = authorizeUrl;
      log.info('login_link_created', { connection: connection.name, authorize_url: logged });
    };
    run.runner.watch(logLink);
    logLink();
  }
}
