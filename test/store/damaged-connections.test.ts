import { describe, expect, test } from 'vitest';
import type { Connection } from '../../src/core/connections/connection.ts';
import { Secret } from '../../src/core/secret.ts';
import { writeSnapshot } from '../../src/store/sqlite/snapshot.ts';
import { sampleGrant } from '../core/samples.ts';
import { memoryStateFolder } from '../support/state-folder.ts';
import { corruptTable, runSql } from './corrupt-store.ts';
import { addAppliance, FRIDGE, HEATER, open, openAsHub, ownConnection, sampleSession, WALLBOX } from './test-store.ts';

const SHARED: Connection = {
  id: '88888888-8888-4888-8888-888888888888',
  name: 'netatmo',
  title: 'Netatmo',
  portal: 'home',
  scope: 'Monitoring',
  origin: 'declared',
};
const THERMOSTAT = { ...HEATER, name: 'thermostat', connection: SHARED.id };
const DASHBOARD = {
  ...HEATER,
  id: '99999999-9999-4999-8999-999999999999',
  clientId: 'dashboard',
  name: 'dashboard',
  connection: SHARED.id,
};
const APPLIANCES = [DASHBOARD, FRIDGE, THERMOSTAT, WALLBOX];
const OWN = [ownConnection(FRIDGE), ownConnection(WALLBOX)];
const wallboxGrant = sampleGrant({ connection: WALLBOX.id });
const sharedGrant = sampleGrant({
  connection: SHARED.id,
  refreshToken: new Secret('the-shared-refresh-token'),
  requestedScope: 'Monitoring',
  issuer: { origin: 'https://portal.example', clientId: 'a-client', name: 'home' },
});

/** Fills a store: two appliances of one paired connection, a paired one of its own, and one that is not paired. */
async function fillStore(path: string): Promise<void> {
  using store = open(path);
  await store.settings.save({ hub_id: 'the hub' });
  await store.registry.save({ addedConnections: [SHARED], addedAppliances: [THERMOSTAT, DASHBOARD] });
  for (const appliance of [WALLBOX, FRIDGE]) await addAppliance(store, appliance);
  for (const grant of [wallboxGrant, sharedGrant]) await store.grants.replace(grant);
  await store.sessions.save(sampleSession(THERMOSTAT, 'thermostat'));
}

/** The same with a snapshot, since which the shared grant was refreshed. */
async function fillStoreWithSnapshot(path: string): Promise<void> {
  await fillStore(path);
  using store = open(path);
  await writeSnapshot(store);
  await store.grants.replace({ ...sharedGrant, generation: 2 });
}

async function readAll(path: string) {
  using store = await openAsHub(path);
  return {
    connections: await store.registry.connections(),
    appliances: await store.registry.appliances(),
    grants: (await store.grants.all()).map(({ grant }) => grant),
    sessions: (await store.sessions.all()).map(({ hash }) => hash),
    damaged: [...store.registry.damagedAppliances],
    recovered: store.recoverySummary,
  };
}

const WHOLE = {
  connections: [OWN[0], SHARED, OWN[1]],
  appliances: APPLIANCES,
  grants: [wallboxGrant, sharedGrant],
  sessions: ['hash-thermostat'],
  damaged: [],
  recovered: null,
};

describe('connection row changed without the store key', () => {
  test.each<[string, string, Partial<Connection>]>([
    ['its name', "name = 'mine'", { name: 'mine' }],
    ['its portal', "portal = 'another'", { portal: 'another' }],
    ['its sealed text, to nothing', "sealed = ''", {}],
  ])(
    'a connection of which somebody has changed %s is damaged, and keeps its grant and its appliances',
    async (_, change, changes) => {
      using folder = memoryStateFolder();
      await fillStore(folder.path);
      runSql(folder.path, `UPDATE connections SET ${change} WHERE name = 'netatmo'`);
      const { name } = { ...SHARED, ...changes };
      const changed: Connection = { ...SHARED, ...changes, title: name, origin: 'added', damaged: true };
      expect(await readAll(folder.path)).toEqual({
        ...WHOLE,
        connections: [OWN[0], changed, OWN[1]].toSorted((a, b) => ((a?.name ?? '') < (b?.name ?? '') ? -1 : 1)),
      });
    },
  );

  test('a changed connection row is restored from the snapshot, and the summary names the connection', async () => {
    using folder = memoryStateFolder();
    await fillStoreWithSnapshot(folder.path);
    runSql(folder.path, "UPDATE connections SET portal = 'mine' WHERE name = 'netatmo'");
    const restored = { ...WHOLE, grants: [wallboxGrant, { ...sharedGrant, generation: 2 }] };
    expect(await readAll(folder.path)).toEqual({
      ...restored,
      recovered: expect.stringContaining('the connection netatmo'),
    });
    expect(await readAll(folder.path)).toEqual(restored);
  });

  test('an appliance that was moved without the store key has no credentials', async () => {
    using folder = memoryStateFolder();
    await fillStore(folder.path);
    runSql(folder.path, `UPDATE appliances SET connection = '${SHARED.id}' WHERE name = 'fridge'`);
    expect(await readAll(folder.path)).toMatchObject({
      appliances: [DASHBOARD, { name: 'fridge', credentials: { kind: 'none', damaged: true } }, THERMOSTAT, WALLBOX],
      damaged: [FRIDGE.id],
    });
  });
});

describe('damaged table of connections', () => {
  test('the connections of a damaged table come from the snapshot, and the newer grants are kept', async () => {
    using folder = memoryStateFolder();
    await fillStoreWithSnapshot(folder.path);
    corruptTable(folder.path, 'connections');
    const restored = { ...WHOLE, grants: [wallboxGrant, { ...sharedGrant, generation: 2 }] };
    expect(await readAll(folder.path)).toEqual({ ...restored, recovered: expect.stringContaining('was damaged') });
    expect(await readAll(folder.path)).toEqual(restored);
  });

  test('connections that nothing else has are made again from their grants, and keep their appliances', async () => {
    using folder = memoryStateFolder();
    await fillStore(folder.path);
    corruptTable(folder.path, 'connections');
    const recreated = {
      ...WHOLE,
      connections: [
        { ...SHARED, name: 'thermostat', title: 'thermostat', origin: 'added' },
        { id: WALLBOX.id, name: 'wallbox', title: 'wallbox', portal: 'home', scope: null, origin: 'added' },
      ],
      // Its connection had no grant.
      appliances: [DASHBOARD, THERMOSTAT, WALLBOX],
    };
    expect(await readAll(folder.path)).toEqual({
      ...recreated,
      recovered: expect.stringContaining("; fridge could not be kept, because its connection can't be read"),
    });
    expect(await readAll(folder.path)).toEqual(recreated);
  });

  test('of two connections with one name, both keep their grants', async () => {
    using folder = memoryStateFolder();
    await fillStore(folder.path);
    // A table that permits what the damage to an index of the real one can lead to.
    runSql(
      folder.path,
      `PRAGMA foreign_keys = OFF;
       CREATE TABLE same (id TEXT PRIMARY KEY, name TEXT, portal TEXT, scope TEXT, sealed TEXT);
       INSERT INTO same SELECT id, 'wallbox', portal, scope, sealed FROM connections;
       DROP TABLE connections;
       ALTER TABLE same RENAME TO connections`,
    );
    corruptTable(folder.path, 'settings');
    const { connections, grants, appliances } = await readAll(folder.path);
    expect(grants).toEqual([wallboxGrant, sharedGrant]);
    expect(connections.map(({ id, name }) => [id, name])).toEqual([
      [SHARED.id, 'thermostat'],
      [WALLBOX.id, 'wallbox'],
    ]);
    expect(appliances).toEqual([DASHBOARD, THERMOSTAT, WALLBOX]);
  });
});
