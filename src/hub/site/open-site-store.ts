import type { Environment } from '../../broker/ports.ts';
import type { Configuration } from '../../configuration/configuration.ts';
import { Failure } from '../../core/failure.ts';
import { jweSealing, STORE_KEY_BYTES } from '../../store/keys/sealing.ts';
import { openWithSiteKey } from '../../store/keys/store-key.ts';
import type { PostgresStore } from '../../store/postgres/postgres-store.ts';
import { loadHubId, saveHubId } from './hub-id.ts';

/**
 * Opens the store of a site. Only then `pg` is loaded. After a restore the hub takes over the id of the hub that made
 * the backup.
 * @throws Failure `database_unavailable` if it may work later; others if a person has to do something
 */
export async function openSiteStore(
  configuration: Pick<Configuration, 'name' | 'site' | 'stateDirectory' | 'credentialsDirectory'>,
  environment: Pick<Environment, 'clock' | 'timers' | 'random'>,
): Promise<PostgresStore> {
  const { stateDirectory } = configuration;
  const hubId = await loadHubId(stateDirectory);
  const store = await openAs(hubId, configuration, environment);
  const restoredId = await store.settings.get('hub_id').catch(() => null);
  if (restoredId === null || restoredId === hubId) return store;
  await store[Symbol.asyncDispose]();
  await saveHubId(stateDirectory, restoredId);
  const restored = await openAs(restoredId, configuration, environment);
  // At worst the list has an entry of a hub that will be missing.
  await restored.site.removeHub(hubId).catch(() => undefined);
  return restored;
}

async function openAs(
  hubId: string,
  { name: hubName, site, stateDirectory, credentialsDirectory: credentials }: Parameters<typeof openSiteStore>[0],
  { clock, timers, random }: Parameters<typeof openSiteStore>[1],
): Promise<PostgresStore> {
  if (site === null) throw new Failure('unexpected', 'no site is configured');
  const [{ openPostgresStore }, { readDatabaseAddress }] = await Promise.all([
    import('../../store/postgres/open-postgres-store.ts'),
    import('../../store/postgres/database/postgres-url.ts'),
  ]);
  const address = await readDatabaseAddress(site.url);
  const freshKey = () => random.token(STORE_KEY_BYTES);
  return openWithSiteKey({ stateDirectory, credentials, freshKey }, (key) =>
    openPostgresStore({ address, hubId, hubName, sealing: jweSealing(key), clock, timers, random }),
  );
}
