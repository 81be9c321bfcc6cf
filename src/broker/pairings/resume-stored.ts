import { messageOf } from '../../core/failure.ts';
import { advance, needsPortalRequests, type Pairing } from '../../core/pairings/pairing.ts';
import { emitPairingFailed, type PairingContext } from './pairing-context.ts';
import { flowKey, type PairingIndex } from './pairing-index.ts';
import { PairingRun } from './pairing-run.ts';

/**
 * Loads the pairings of the last run of a hub without a site; the newest of each connection, and of each device flow,
 * continues if it is open.
 */
export async function resumeStored(context: PairingContext, index: PairingIndex): Promise<void> {
  const stored = await context.store.pairings();
  const newest = new Map(stored.map((pairing) => [flowKey(pairing), pairing.id]));
  for (const pairing of stored) {
    const isNewest = newest.get(flowKey(pairing)) === pairing.id;
    const resumed = isNewest ? pairing : advance(pairing, { kind: 'failed', reason: 'replaced' });
    if (resumed !== pairing) await saveReplaced(context, pairing, resumed);
    index.add(PairingRun.resume(context, resumed));
  }
}

/** Saves that a pairing was replaced, if the last run ended before it could; the failure is emitted once. */
async function saveReplaced({ store, environment }: PairingContext, pairing: Pairing, ended: Pairing): Promise<void> {
  try {
    await store.savePairing(ended);
    if (needsPortalRequests(pairing)) emitPairingFailed(environment, ended);
  } catch (error) {
    environment.log.error('store_unwritable', { error: messageOf(error) });
  }
}
