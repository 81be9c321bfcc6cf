import { describe, expect, test } from 'vitest';
import type { Appliance } from '../../src/core/appliances/appliance.ts';
import type { BackupContents } from '../../src/core/backup-contents.ts';
import type { Connection } from '../../src/core/connections/connection.ts';
import { Secret } from '../../src/core/secret.ts';
import { captureState, restoreState } from '../../src/store/backup/backup.ts';
import { parseBackup, serializeBackup } from '../../src/store/backup/backup-file.ts';
import { instantAt, sampleGrant } from '../core/samples.ts';
import { memoryStateFolder } from '../support/state-folder.ts';
import { runSql } from './corrupt-store.ts';
import { addAppliance, FRIDGE, HEATER, open, ownConnection, sampleSession, WALLBOX } from './test-store.ts';

const MADE = Date.UTC(2031, 4, 5, 6);
const doubt = { kind: 'copy', lostAt: { boot: '', uptime: 0, wall: MADE }, sends: 0 } as const;
const SHARED: Connection = {
  id: '88888888-8888-4888-8888-888888888888',
  name: 'netatmo',
  title: 'Netatmo',
  portal: 'home',
  scope: 'Monitoring',
  origin: 'added',
};
const THERMOSTAT: Appliance = { ...HEATER, name: 'thermostat', connection: SHARED.id };
const DASHBOARD: Appliance = {
  ...HEATER,
  id: '99999999-9999-4999-8999-999999999999',
  clientId: 'dashboard',
  name: 'dashboard',
  connection: SHARED.id,
};
const sharedGrant = sampleGrant({
  connection: SHARED.id,
  generation: 3,
  idToken: new Secret('the-id-token'),
  login: { pairing: 'a-pairing', at: instantAt(1), portalTime: null, refreshTokenLifetime: 9 },
  refreshTokenLifetime: 8,
});
const BACKUP: BackupContents = {
  made: MADE,
  settings: new Map([['hub_id', 'the hub']]),
  connections: [SHARED, ownConnection(WALLBOX)],
  appliances: [DASHBOARD, THERMOSTAT, WALLBOX],
  grants: [sharedGrant],
  sessions: [sampleSession(DASHBOARD, 'dashboard'), sampleSession(THERMOSTAT, 'thermostat')],
};
const OTHER_ID = '44444444-4444-4444-8444-444444444444';

type OpenStore = ReturnType<typeof open>;

async function contentOf(store: OpenStore) {
  return {
    connections: await store.registry.connections(),
    appliances: await store.registry.appliances(),
    grants: (await store.grants.all()).map(({ grant }) => grant),
    sessions: (await store.sessions.all()).map(({ hash }) => hash),
  };
}

async function saveGenerations(store: OpenStore, connection: string, last: number): Promise<void> {
  for (let generation = 1; generation <= last; generation++) {
    expect(await store.grants.replace(sampleGrant({ connection, generation }))).toBe(true);
  }
}

test('what was damaged when a backup was made stays damaged where the backup is restored', async () => {
  using first = memoryStateFolder();
  using second = memoryStateFolder();
  {
    using store = open(first.path);
    await store.registry.save({ addedConnections: [SHARED], addedAppliances: [DASHBOARD, THERMOSTAT] });
  }
  runSql(
    first.path,
    "UPDATE connections SET name = 'mine'; UPDATE appliances SET name = 'yours' WHERE name = 'thermostat'",
  );
  let copy: BackupContents;
  {
    using store = open(first.path);
    copy = parseBackup(serializeBackup(await captureState(store, MADE)));
  }
  {
    using store = open(second.path);
    await restoreState(store, copy);
  }
  using store = open(second.path);
  expect(await contentOf(store)).toMatchObject({
    connections: [{ name: 'mine', damaged: true }],
    appliances: [{ name: 'dashboard' }, { name: 'yours', credentials: { kind: 'none', damaged: true } }],
  });
});

test('a backup contains connections with their appliances, and is restored on a new hub', async () => {
  using first = memoryStateFolder();
  using second = memoryStateFolder();
  let copy: BackupContents;
  {
    using store = open(first.path);
    await store.settings.save({ hub_id: 'the hub' });
    await store.registry.save({ addedConnections: BACKUP.connections, addedAppliances: BACKUP.appliances });
    for (const generation of [1, 2, 3]) await store.grants.replace({ ...sharedGrant, generation });
    for (const session of BACKUP.sessions) await store.sessions.save(session);
    copy = parseBackup(serializeBackup(await captureState(store, MADE)));
  }
  expect(copy).toEqual({
    ...BACKUP,
    connections: expect.arrayContaining([...BACKUP.connections]),
    appliances: expect.arrayContaining([...BACKUP.appliances]),
  });
  using store = open(second.path);
  expect(await restoreState(store, copy)).toEqual({ restored: ['netatmo'], kept: [] });
  expect(await contentOf(store)).toEqual({
    connections: [SHARED, ownConnection(WALLBOX)],
    appliances: [DASHBOARD, THERMOSTAT, WALLBOX],
    grants: [{ ...sharedGrant, doubt }],
    sessions: ['hash-dashboard', 'hash-thermostat'],
  });
  expect((await store.grants.get(SHARED.id))?.grant.idToken?.reveal()).toBe('the-id-token');
});

describe('content of a backup', () => {
  test.each<[string, Partial<Record<keyof BackupContents, unknown>>]>([
    ['no connections', { connections: undefined }],
    ['a connection with an invalid name', { connections: [{ ...SHARED, name: 'Not A Name' }] }],
    ['a connection of an unknown origin', { connections: [{ ...SHARED, origin: 'found' }] }],
    ['an appliance without a connection', { connections: [ownConnection(WALLBOX)] }],
  ])('a backup with %s is refused', (_, changes) => {
    const document = { ...JSON.parse(serializeBackup(BACKUP)), ...changes };
    expect(() => parseBackup(JSON.stringify(document))).toThrow(expect.objectContaining({ code: 'copy_unusable' }));
  });
});

describe('restoring connections from a backup', () => {
  test('restoring a backup keeps a newer grant with the sessions of all its appliances', async () => {
    using folder = memoryStateFolder();
    using store = open(folder.path);
    await store.registry.save({ addedConnections: [SHARED], addedAppliances: [DASHBOARD, THERMOSTAT] });
    await saveGenerations(store, SHARED.id, 4);
    await store.sessions.save(sampleSession(THERMOSTAT, 'own'));
    expect(await restoreState(store, BACKUP)).toEqual({ restored: [], kept: ['netatmo'] });
    expect(await contentOf(store)).toMatchObject({ grants: [{ generation: 4, doubt: null }], sessions: ['hash-own'] });
  });

  test('restoring a backup replaces an older grant, with the sessions of all its appliances', async () => {
    using folder = memoryStateFolder();
    using store = open(folder.path);
    const renamed = { ...SHARED, name: 'weather', scope: null };
    await store.registry.save({ addedConnections: [renamed], addedAppliances: [DASHBOARD, THERMOSTAT] });
    await saveGenerations(store, SHARED.id, 2);
    await store.sessions.save(sampleSession(THERMOSTAT, 'own'));
    expect(await restoreState(store, BACKUP)).toEqual({ restored: ['weather'], kept: [] });
    expect(await contentOf(store)).toEqual({
      connections: [ownConnection(WALLBOX), renamed],
      appliances: [DASHBOARD, THERMOSTAT, WALLBOX],
      grants: [{ ...sharedGrant, doubt }],
      sessions: ['hash-dashboard', 'hash-thermostat', 'hash-own'],
    });
  });

  test('restoring a backup brings back the sessions for a replaced grant, and none for another of the same appliance', async () => {
    using folder = memoryStateFolder();
    using store = open(folder.path);
    const other = { ...SHARED, id: OTHER_ID, name: 'tado' };
    const hass = { ...DASHBOARD, more: [OTHER_ID] };
    await store.registry.save({ addedConnections: [SHARED, other], addedAppliances: [hass] });
    for (const { id } of [SHARED, other]) await saveGenerations(store, id, 2);
    const sessionFor = ({ id, name }: Connection) => ({ ...sampleSession(hass, name), connection: id });
    await restoreState(store, {
      ...BACKUP,
      connections: [SHARED, other],
      appliances: [hass],
      grants: [sharedGrant, sampleGrant({ connection: OTHER_ID })],
      sessions: [sessionFor(SHARED), sessionFor(other)],
    });
    expect((await contentOf(store)).sessions).toEqual(['hash-netatmo']);
  });

  test('restoring a backup takes over the name of a connection without a grant, and its appliances', async () => {
    using folder = memoryStateFolder();
    using store = open(folder.path);
    const own = { ...SHARED, id: OTHER_ID, scope: null, origin: 'declared' } as const;
    const user = { ...FRIDGE, connection: OTHER_ID };
    const moved = { ...DASHBOARD, connection: OTHER_ID };
    const id = 'aaaaaaaa-aaaa-4aaa-8aaa-aaaaaaaaaaaa';
    const several = { ...FRIDGE, id, clientId: 'hass', name: 'hass', connection: id, more: [OTHER_ID] };
    await store.registry.save({
      addedConnections: [own, ownConnection(several)],
      addedAppliances: [user, moved, several],
    });
    await store.sessions.save(sampleSession(FRIDGE, 'fridge'));
    await restoreState(store, BACKUP);
    expect(await contentOf(store)).toEqual({
      connections: [ownConnection(several), SHARED, ownConnection(WALLBOX)],
      appliances: [
        DASHBOARD,
        { ...user, connection: SHARED.id },
        { ...several, more: [SHARED.id] },
        THERMOSTAT,
        WALLBOX,
      ],
      grants: [{ ...sharedGrant, doubt }],
      sessions: ['hash-dashboard', 'hash-thermostat', 'hash-fridge'],
    });
  });

  test('restoring a backup fails if the name of one of its connections belongs to another with a grant', async () => {
    using folder = memoryStateFolder();
    using store = open(folder.path);
    const own = { ...SHARED, id: OTHER_ID };
    await store.registry.save({ addedConnections: [own] });
    await saveGenerations(store, OTHER_ID, 1);
    const before = await contentOf(store);
    await expect(restoreState(store, BACKUP)).rejects.toMatchObject({
      code: 'appliance_exists',
      message: expect.stringMatching(/connection netatmo.*latchkey connection remove netatmo.*nothing was changed/),
    });
    expect(await contentOf(store)).toEqual(before);
    expect(await store.settings.get('hub_id')).toBeNull();
  });

  test('restoring a backup fails if an appliance of its name uses another connection with a grant', async () => {
    using folder = memoryStateFolder();
    using store = open(folder.path);
    const own = { ...SHARED, id: OTHER_ID, name: 'weather' };
    const other = { ...FRIDGE, name: 'dashboard', connection: OTHER_ID };
    await store.registry.save({ addedConnections: [own], addedAppliances: [other] });
    await saveGenerations(store, OTHER_ID, 1);
    await expect(restoreState(store, BACKUP)).rejects.toMatchObject({
      code: 'appliance_exists',
      message: expect.stringMatching(/appliance dashboard.*latchkey appliance remove dashboard.*nothing was changed/),
    });
    expect(await store.registry.appliances()).toEqual([other]);
  });

  test('an appliance that gives way takes its own connection with it, and leaves one that an installer added', async () => {
    using folder = memoryStateFolder();
    using store = open(folder.path);
    const namesake = { ...FRIDGE, clientId: THERMOSTAT.clientId };
    await addAppliance(store, namesake);
    const added = { ...SHARED, id: OTHER_ID, name: 'weather' };
    const other = { ...FRIDGE, id: OTHER_ID, clientId: 'another', name: 'dashboard', connection: OTHER_ID };
    await store.registry.save({ addedConnections: [added], addedAppliances: [other] });
    await restoreState(store, BACKUP);
    expect(await contentOf(store)).toMatchObject({
      connections: [SHARED, ownConnection(WALLBOX), added],
      appliances: [DASHBOARD, THERMOSTAT, WALLBOX],
    });
  });
});
