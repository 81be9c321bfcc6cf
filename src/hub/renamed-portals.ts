import type { Appliances } from '../broker/appliances.ts';
import { Failure } from '../core/failure.ts';
import type { Log } from '../core/log.ts';
import type { Store } from '../core/store.ts';
import type { Portals } from './portals.ts';

/**
 * Takes along the appliances whose portal has another name in the configuration by now: which one it is their grants tell.
 * One that was never paired waits for its portal's name to come back.
 */
export async function followRenamedPortals(
  appliances: Appliances,
  portals: Pick<Portals, 'nameOf'>,
  store: Pick<Store, 'grant'>,
  log: Log,
): Promise<void> {
  for (const appliance of appliances.list()) {
    if (appliances.hasPortal(appliance.portal)) continue;
    const givenBy = (await store.grant(appliance.id))?.grant.givenBy;
    const portal = givenBy && portals.nameOf(givenBy);
    if (portal === undefined) continue;
    const renamed = { ...appliance, portal };
    await appliances
      .change(appliance.id, (current) => ({ ...current, portal }))
      .catch((error: unknown) => {
        if (!(error instanceof Failure && error.code === 'store_unwritable')) throw error;
        appliances.serveUnwritten(renamed);
      });
    log.info('portal has another name', { appliance: appliance.name, before: appliance.portal, portal });
  }
}
