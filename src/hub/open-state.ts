import type { Surroundings } from '../broker/surroundings.ts';
import { openStore } from '../store/open-store.ts';
import { jweSealing, KEY_BYTES } from '../store/sealing.ts';
import type { SqliteStore } from '../store/sqlite-store.ts';
import { openStateDirectory, storeKey } from '../store/state-directory.ts';
import type { Configuration } from './configuration.ts';
import { type Identity, loadIdentity } from './identity.ts';

/**
 * Opens the store, and finds out which hub this is.
 * @param parts the store is disposed of with these
 * @throws Failure as the store
 */
export async function openState(
  { stateDirectory, credentials }: Configuration,
  { clock, random, log }: Surroundings,
  parts: AsyncDisposableStack,
): Promise<{ readonly store: SqliteStore; readonly identity: Identity }> {
  await openStateDirectory(stateDirectory);
  const key = await storeKey(stateDirectory, credentials, () => random.token(KEY_BYTES));
  const store = parts.use(await openStore(stateDirectory, jweSealing(key), () => clock.now().wall));
  if (store.recovered !== null) log.error('store recovered', { what: store.recovered });
  if (store.unwritable !== null)
    log.error('store can not be written, serving from memory', { error: store.unwritable });
  return { store, identity: await loadIdentity(store) };
}
