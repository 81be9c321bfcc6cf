import { join } from 'node:path';
import { expect, it } from 'vitest';
import { loadConfiguration } from '../../../src/configuration/configuration.ts';
import { startHub } from '../../../src/hub/hub.ts';
import { jweSealing, STORE_KEY_BYTES } from '../../../src/store/keys/sealing.ts';
import { loadStoreKey } from '../../../src/store/keys/store-key.ts';
import { openStore } from '../../../src/store/sqlite/open-store.ts';
import { systemRandom } from '../../../src/system/random.ts';
import { HubProcess } from '../../support/hub-process.ts';
import { logTo } from '../../support/log-to.ts';
import { longestTurnShare } from '../../support/loop-turns.ts';
import { startPortal } from '../../support/portal.ts';

const APPLIANCES = 6000;

it(`the status of ${APPLIANCES} appliances is collected in many turns of the event loop`, async () => {
  await using emulator = await startPortal();
  await using prepared = await HubProcess.prepare({ emulator });
  await addAppliances(join(prepared.directory, 'state'));
  const configuration = await loadConfiguration(join(prepared.directory, 'latchkey.toml'), {});
  await using hub = await startHub(
    configuration,
    logTo(() => undefined),
  );
  const { administration } = hub;
  expect((await administration.status()).appliances).toHaveLength(APPLIANCES);
  // The conditions are derived in one turn.
  expect(await longestTurnShare(() => administration.status())).toBeLessThan(0.9);
});

/** Adds appliances to the store of a hub that does not run. */
async function addAppliances(directory: string): Promise<void> {
  const key = await loadStoreKey(directory, undefined, () => systemRandom.token(STORE_KEY_BYTES));
  using store = await openStore(directory, jweSealing(key), Date.now);
  const ids = Array.from({ length: APPLIANCES }, () => systemRandom.uuid());
  await store.saveRegistry({
    addedConnections: ids.map((id) => ({ id, name: `a-${id}`, portal: 'home', scope: null, origin: 'implicit' })),
    addedAppliances: ids.map((id) => ({
      ...{ id, clientId: id, name: `a-${id}`, connection: id, credentials: { kind: 'none' }, origin: 'added' },
      ...{ waiting: null, softwareId: null },
    })),
  });
}
