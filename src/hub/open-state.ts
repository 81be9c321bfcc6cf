import type { Environment } from '../broker/environment.ts';
import type { Configuration } from '../configuration/configuration.ts';
import { messageOf } from '../core/failure.ts';
import { writeSnapshot } from '../store/backup/snapshot.ts';
import { type KeyRotation, openStoreWithKeys } from '../store/keys/key-rotation.ts';
import { STORE_KEY_BYTES } from '../store/keys/sealing.ts';
import type { SqliteStore } from '../store/sqlite-store.ts';
import { ensureStateDirectory } from '../store/state-directory.ts';
import { hubAddresses } from './hub-endpoints.ts';
import { type Identity, loadIdentity } from './identity.ts';

/** The store, and what makes the hub this one. */
interface OpenedState {
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
  { stateDirectory, credentialsDirectory: credentials, lan }: Configuration,
  { clock, random, log }: Environment,
  parts: AsyncDisposableStack,
): Promise<OpenedState> {
  await ensureStateDirectory(stateDirectory);
  const { store, keyRotation } = await openStoreWithKeys(stateDirectory, credentials, {
    freshKey: () => random.token(STORE_KEY_BYTES),
    wall: () => clock.now().wall,
  });
  parts.use(store);
  if (store.recoverySummary !== null) log.error('store_recovered', { detail: store.recoverySummary });
  if (store.writeProblem !== null) log.error('store_unwritable', { error: store.writeProblem });
  try {
    const rotated = await keyRotation.resumeInterrupted(() => writeSnapshot(store));
    const error = rotated?.snapshotProblem ?? null;
    if (error !== null) log.warn('snapshot_failed', { error });
  } catch (error) {
    log.error('store_key_install_failed', { error: messageOf(error) });
  }
  if (keyRotation.needsCredentialRename) {
    log.warn('store_key_pending', { what_to_do: 'put that credential in the place of store.key' });
  }
  return { store, keyRotation, identity: await loadIdentity(store, () => hubAddresses(lan)) };
}
