import { expect, test } from 'vitest';
import type { Appliance } from '../../../src/core/appliances/appliance.ts';
import type { BackupContents } from '../../../src/core/backup-contents.ts';
import type { Connection } from '../../../src/core/connections/connection.ts';
import { messageOf } from '../../../src/core/failure.ts';
import type { Store } from '../../../src/core/store.ts';
import { restoreState } from '../../../src/store/backup/backup.ts';
import type { BackupStore } from '../../../src/store/backup/backup-store.ts';
import { sampleGrant } from '../../core/samples.ts';
import { addressOf, openSiteStore, useSiteServer } from '../../site/site-harness.ts';
import { addAppliance, FRIDGE, HEATER, open, ownConnection, sampleSession, WALLBOX } from '../../store/test-store.ts';
import { memoryStateFolder } from '../../support/state-folder.ts';
import { generationOf } from '../../support/stored-grants.ts';

const siteServer = useSiteServer();

const SHARED: Connection = {
  id: '88888888-8888-4888-8888-888888888888',
  name: 'netatmo',
  title: 'Netatmo',
  portal: 'home',
  scope: 'Monitoring',
  origin: 'added',
};
const OTHER_ID = '44444444-4444-4444-8444-444444444444';
const OTHER: Connection = { ...SHARED, id: OTHER_ID };
const THERMOSTAT: Appliance = { ...HEATER, name: 'thermostat', connection: SHARED.id };
const DASHBOARD: Appliance = {
  ...HEATER,
  id: '99999999-9999-4999-8999-999999999999',
  clientId: 'dashboard',
  name: 'dashboard',
  connection: SHARED.id,
};
const BACKUP: BackupContents = {
  made: Date.UTC(2031, 4, 5, 6),
  settings: new Map([
    ['ca_key', 'the key'],
    ['ca_certificate', 'the certificate'],
    ['setup_code', 'the code'],
    ['site_id', 'site-of-the-backup'],
  ]),
  connections: [SHARED, ownConnection(WALLBOX)],
  appliances: [DASHBOARD, THERMOSTAT, WALLBOX],
  grants: [sampleGrant({ connection: SHARED.id, generation: 3, refused: sampleGrant().obtained })],
  sessions: [
    ...Array.from({ length: 7 }, (_, index) => sampleSession(DASHBOARD, `dashboard-${index}`)),
    sampleSession(THERMOSTAT, 'thermostat'),
  ],
};

type TestedStore = BackupStore & Store;

async function saveGenerations(store: Store, connection: string, last: number): Promise<void> {
  for (let generation = 1; generation <= last; generation++) {
    expect(await store.grants.replace(sampleGrant({ connection, generation }))).toBe(true);
  }
}

/** What a restore finds, by what that is. */
const BEFORE: Record<string, (store: TestedStore) => Promise<unknown>> = {
  'the same appliances with an older grant and sessions': async (store) => {
    const renamed = { ...SHARED, name: 'weather', scope: null };
    await store.registry.save({ addedConnections: [renamed], addedAppliances: [DASHBOARD, THERMOSTAT] });
    await saveGenerations(store, SHARED.id, 2);
    for (const name of ['own', 'thermostat', 'dashboard-3']) {
      await store.sessions.save(sampleSession(name === 'dashboard-3' ? DASHBOARD : THERMOSTAT, name));
    }
  },
  'another connection of the same name without a grant': async (store) => {
    const [user, moved] = [FRIDGE, DASHBOARD].map((appliance) => ({ ...appliance, connection: OTHER_ID }));
    await store.registry.save({ addedConnections: [OTHER], addedAppliances: [user ?? FRIDGE, moved ?? DASHBOARD] });
    await store.sessions.save(sampleSession(FRIDGE, 'fridge'));
  },
  'another connection of the same name with a grant': async (store) => {
    await store.registry.save({ addedConnections: [OTHER] });
    await saveGenerations(store, OTHER_ID, 1);
  },
  'other appliances of the same client_id and name without a grant': async (store) => {
    await addAppliance(store, { ...FRIDGE, clientId: THERMOSTAT.clientId });
    const added = { ...OTHER, name: 'weather' };
    const other = { ...FRIDGE, id: OTHER_ID, clientId: 'another', name: 'dashboard', connection: OTHER_ID };
    await store.registry.save({ addedConnections: [added], addedAppliances: [other] });
  },
  'settings of another CA': async (store) => {
    await store.settings.save({ ca_key: 'own', ca_certificate: 'own', ca_old: 'own', setup_code: 'own', other: 'own' });
  },
};

/** Restores a backup into a store, and tells what that led to. */
async function resultIn(store: TestedStore, before: (store: TestedStore) => Promise<unknown>) {
  await before(store);
  const outcome = await restoreState(store, BACKUP).catch(messageOf);
  const settings = ['ca_key', 'ca_certificate', 'ca_old', 'setup_code', 'other'];
  return {
    outcome,
    settings: await Promise.all(settings.map(async (name) => [name, await store.settings.get(name)])),
    connections: await store.registry.connections(),
    appliances: await store.registry.appliances(),
    grants: (await store.grants.all()).map(({ grant }) => ({ ...grant, tokens: [grant.accessToken.reveal()] })),
    sessions: (await store.sessions.all()).map(({ hash }) => hash),
    generation: await generationOf(store, SHARED.id),
  };
}

test.each(Object.entries(BEFORE))('a restore changes a site like a hub on SQLite that has %s', async (_, before) => {
  using folder = memoryStateFolder();
  using local = open(folder.path);
  const { url } = await (await siteServer()).createDatabase();
  await using site = await openSiteStore(addressOf(url), 'latchkey-00000001');
  const { siteId } = site.site;
  const result = await resultIn(site, before);
  expect(result).toEqual(await resultIn(local, before));
  // Of what is restored, the site's id is never a part.
  expect(await site.settings.get('site_id')).toBe(siteId);
  // It can be repeated, and the grants are not older then.
  const { outcome: repeated } = await resultIn(site, async () => undefined);
  if (typeof result.outcome === 'object') expect(repeated).toEqual({ restored: [], kept: [expect.any(String)] });
});
