import type { BrokerStore, Environment } from '../broker/ports.ts';
import type { Configuration } from '../configuration/configuration.ts';
import { messageOf } from '../core/failure.ts';
import type { BackupStore } from '../store/backup/backup-store.ts';
import { STORE_KEY_BYTES } from '../store/keys/sealing.ts';
import { type KeyRotation, openStoreWithKeys } from '../store/sqlite/key-rotation.ts';
import { writeSnapshot } from '../store/sqlite/snapshot.ts';
import type { SqliteStore } from '../store/sqlite/sqlite-store.ts';
import { describeVolatileState, ensureStateDirectory, requireVolume } from '../store/state-directory.ts';
import { isInContainer } from '../system/container.ts';
import { hubAddresses } from './hub-endpoints.ts';
import { type Identity, loadIdentity } from './identity.ts';
import { openSiteStore } from './site/open-site-store.ts';

/** The store of a hub: SQLite in its state directory, or the database of its site. */
export interface HubStore extends BrokerStore, BackupStore {}

/** What only a hub on SQLite has: the files of its store, and the key that it can replace. */
export interface LocalStore {
  readonly store: SqliteStore;
  readonly keyRotation: KeyRotation;
  /** Why nothing in the state directory outlives a reboot; null if it does. */
  readonly volatileReason: string | null;
}

/** The store, and the identity that it holds. */
interface OpenedState {
  readonly store: HubStore;
  /** Null on a site. */
  readonly local: LocalStore | null;
  readonly identity: Identity;
}

/**
 * Opens the store, and loads the hub's identity.
 * @param parts owns the store
 * @throws Failure as the store
 */
export async function openState(
  configuration: Configuration,
  environment: Environment,
  parts: AsyncDisposableStack,
): Promise<OpenedState> {
  const { stateDirectory, site, lan, testMode } = configuration;
  if (isInContainer() && testMode !== true) await requireVolume(stateDirectory);
  await ensureStateDirectory(stateDirectory);
  const local = site === null ? await openLocalStore(configuration, environment, parts) : null;
  const store = local?.store ?? parts.use(await openSiteStore(configuration, environment));
  return { store, local, identity: await loadIdentity(store, () => hubAddresses(lan)) };
}

async function openLocalStore(
  { stateDirectory, credentialsDirectory: credentials, testMode }: Configuration,
  { clock, random, log }: Environment,
  parts: AsyncDisposableStack,
): Promise<LocalStore> {
  const local = await openStoreWithKeys(stateDirectory, credentials, {
    freshKey: () => random.token(STORE_KEY_BYTES),
    wall: () => clock.now().wall,
  });
  const { store, keyRotation } = local;
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
  const volatileReason = testMode === true ? null : await describeVolatileState(stateDirectory);
  if (volatileReason !== null) log.warn('store_volatile', { detail: volatileReason });
  return { ...local, volatileReason };
}
