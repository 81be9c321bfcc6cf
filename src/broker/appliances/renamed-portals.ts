import { Failure } from '../../core/failure.ts';
import type { Log } from '../../core/log.ts';
import type { Pairing } from '../../core/pairings/pairing.ts';
import type { Store } from '../../core/store.ts';
import type { ConnectedPortals } from '../ports.ts';
import type { Appliances } from './appliances.ts';

/**
 * Takes along the appliances whose portal has another name in the configuration by now: which one it is their grants tell.
 * One that was never paired waits for its portal's name to come back. A pairing that is open goes along.
 */
export async function followRenamedPortals(
  appliances: Appliances,
  portals: Pick<ConnectedPortals, 'nameOf'>,
  store: Pick<Store, 'grant' | 'pairings' | 'savePairing'>,
  log: Log,
): Promise<void> {
  let kept: readonly Pairing[] | undefined;
  for (const appliance of appliances.list()) {
    if (appliances.hasPortal(appliance.portal)) continue;
    const givenBy = (await store.grant(appliance.id))?.grant.givenBy;
    const portal = givenBy && portals.nameOf(givenBy);
    if (portal === undefined) continue;
    const renamed = { ...appliance, portal };
    kept ??= await store.pairings();
    const open = kept.filter((pairing) => pairing.appliance === appliance.id && pairing.step.kind !== 'ended');
    // The pairings first: what is cut short between the two is done at the next start.
    await movePairings(open, appliance.portal, portal, store)
      .then(() => appliances.change(appliance.id, (current) => ({ ...current, portal })))
      .catch((error: unknown) => {
        if (!(error instanceof Failure && error.code === 'store_unwritable')) throw error;
        appliances.serveUnwritten(renamed);
      });
    log.info('portal has another name', { appliance: appliance.name, before: appliance.portal, portal });
  }
}

/** @throws Failure as the store */
async function movePairings(
  pairings: readonly Pairing[],
  before: string,
  portal: string,
  store: Pick<Store, 'savePairing'>,
): Promise<void> {
  for (const pairing of pairings) if (pairing.portal === before) await store.savePairing({ ...pairing, portal });
}
