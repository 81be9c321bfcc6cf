import type { Environment } from '../broker/environment.ts';
import type { Configuration } from '../configuration/configuration.ts';
import { messageOf } from '../core/failure.ts';
import { writeSnapshot } from '../store/backup/snapshot.ts';
import { type KeyRotation, openWithKeys } from '../store/keys/key-rotation.ts';
import { KEY_BYTES } from '../store/keys/sealing.ts';
import type { SqliteStore } from '../store/sqlite-store.ts';
import { openStateDirectory } from '../store/state-directory.ts';
import { type Identity, loadIdentity } from './identity.ts';
import { hubAddresses } from './place.ts';

/** The store, and what makes the hub this one. */
interface State {
  readonly store: SqliteStore;
  readonly keyRotation: KeyRotation;
  readonly identity: Identity;
}

/**
 * Opens the store, and finds out which hub this is.
 * @param parts the store is disposed of with these
 * @throws Failure as the store
 */
export async function openState(
  { stateDirectory, credentials, lan }: Configuration,
  { clock, random, log }: Environment,
  parts: AsyncDisposableStack,
): Promise<State> {
  await openStateDirectory(stateDirectory);
  const { store, keyRotation } = await openWithKeys(stateDirectory, credentials, {
    freshKey: () => random.token(KEY_BYTES),
    wall: () => clock.now().wall,
  });
  parts.use(store);
  if (store.recovered !== null) log.error('store_recovered', { detail: store.recovered });
  if (store.unwritable !== null) log.error('store_unwritable', { error: store.unwritable });
  try {
    const rotated = await keyRotation.finish(() => writeSnapshot(store));
    const error = rotated?.snapshotProblem ?? null;
    if (error !== null) log.warn('snapshot_failed', { error });
  } catch (error) {
    log.error('store_key_install_failed', { error: messageOf(error) });
  }
  if (keyRotation.awaitsOwner) {
    log.warn('store_key_pending', { what_to_do: 'put that credential in the place of store.key' });
  }
  return { store, keyRotation, identity: await loadIdentity(store, () => hubAddresses(lan)) };
}
