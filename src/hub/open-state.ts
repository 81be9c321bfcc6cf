import type { Environment } from '../broker/environment.ts';
import type { Configuration } from '../configuration/configuration.ts';
import { messageOf } from '../core/failure.ts';
import { writeSnapshot } from '../store/backup/snapshot.ts';
import { type KeyRotation, openStoreWithKeys } from '../store/keys/key-rotation.ts';
import { STORE_KEY_BYTES } from '../store/keys/sealing.ts';
import type { SqliteStore } from '../store/sqlite/sqlite-store.ts';
import { ensureStateDirectory } from '../store/state-directory.ts';
import { requireVolume } from '../store/state-volume.ts';
import { isInContainer } from '../system/container.ts';
import { hubAddresses } from './hub-endpoints.ts';
import { type Identity, loadIdentity } from './identity.ts';

/** The store, and the identity that it holds. */
interface OpenedState {
  readonly store: SqliteStore;
  readonly keyRotation: KeyRotation;
  readonly identity: Identity;
}

/**
 * Opens the store, and loads the hub's identity.
 * @param parts owns the store
 * @throws Failure as the store
 */
export async function openState(
  { stateDirectory, credentialsDirectory: credentials, lan, testMode }: Configuration,
  { clock, random, log }: Environment,
  parts: AsyncDisposableStack,
): Promise<OpenedState> {
  if (isInContainer() && testMode !== true) await requireVolume(stateDirectory);
  await ensureStateDirectory(stateDirectory);
  const { store, keyRotation } = await openStoreWithKeys(stateDirectory, credentials, {
    freshKey: () => random.token(STORE_KEY_BYTES),
    wall: () => clock.now().wall,
  });
  parts.use(store);
  if (store.recoverySummary !== null) log.error('store_recovered', { detail: store.recoverySummary });
  if (store.writeProblem !== null) log.error('store_unwritable', { error: store.writeProblem });
  try {
    const result = await keyRotation.resumeInterrupted(() => writeSnapshot(store));
    const error = result?.snapshotProblem ?? null;
    if (error !== null) log.warn('snapshot_failed', { error });
  } catch (error) {
    log.error('store_key_install_failed', { error: messageOf(error) });
  }
  if (keyRotation.needsCredentialRename) {
    log.warn('store_key_pending', { what_to_do: 'replace the credential store.key with store.key.next' });
  }
  return { store, keyRotation, identity: await loadIdentity(store, () => hubAddresses(lan)) };
}
