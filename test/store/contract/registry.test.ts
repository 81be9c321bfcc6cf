import { describe, expect, test } from 'vitest';
import type { Connection } from '../../../src/core/connections/connection.ts';
import type { RegistryChange } from '../../../src/core/store.ts';
import { instantAt, SAMPLE_LINK, sampleGrant, samplePairing } from '../../core/samples.ts';
import { generationOf } from '../../support/stored-grants.ts';
import { FRIDGE, HEATER, ownConnection, sampleSession, WALLBOX } from '../test-store.ts';
import { type ContractStore, describeStores, type StorePlace } from './contract-store.ts';

const SHARED: Connection = {
  id: '88888888-8888-4888-8888-888888888888',
  name: 'netatmo',
  title: 'Netatmo',
  portal: 'home',
  scope: 'Monitoring RemoteControl',
  origin: 'added',
};
const DASHBOARD = { ...WALLBOX, connection: SHARED.id };
const THERMOSTAT = { ...HEATER, connection: SHARED.id };
const INVITE = { hash: 'an-invite', name: null, scope: null, portal: 'home', begun: instantAt(3), lifetime: 1000 };
const HISTORY_ENTRY = { kind: 'paired', why: null, first: 1.95e12, last: 1.95e12, count: 1 } as const;

/** A store with two appliances of one paired connection, and an invite. */
async function withShared(place: StorePlace) {
  const store = await place.open();
  await store.registry.save({ addedConnections: [SHARED], addedAppliances: [DASHBOARD, THERMOSTAT] });
  await store.grants.replace(sampleGrant({ connection: SHARED.id }));
  await store.invites.save(INVITE);
  return store;
}

async function contentOf(store: ContractStore) {
  return {
    connections: await store.registry.connections(),
    appliances: await store.registry.appliances(),
    grants: (await store.grants.all()).map(({ grant }) => grant.connection),
    sessions: (await store.sessions.all()).map(({ hash }) => hash),
    invites: (await store.invites.all()).map(({ hash }) => hash),
  };
}

describeStores('the registry', (newPlace) => {
  describe('connections', () => {
    test.each<[string, Partial<Connection>]>([
      ['added by an installer', {}],
      ["of an appliance's own", { origin: 'implicit', scope: null }],
      ['that is declared', { origin: 'declared', portal: 'another' }],
    ])('a connection %s is read back as it was written, and as it was replaced', async (_, changes) => {
      await using place = await newPlace();
      const connection = { ...SHARED, ...changes };
      const replaced = { ...SHARED, name: 'weather', portal: 'third', scope: 'Another', origin: 'implicit' } as const;
      {
        await using store = await place.open();
        expect(await store.registry.save({ addedConnections: [connection] })).toBe(true);
      }
      {
        await using store = await place.open();
        expect(await store.registry.connections()).toEqual([connection]);
        expect(await store.registry.save({ updatedConnections: [replaced] })).toBe(true);
      }
      await using store = await place.open();
      expect(await store.registry.connections()).toEqual([replaced]);
    });

    test('a connection whose row was changed without the store key stays damaged, however often it is written', async () => {
      await using place = await newPlace();
      {
        await using store = await place.open();
        await store.settings.save({ hub_id: 'the hub' });
        await store.registry.save({ addedConnections: [SHARED] });
      }
      await place.runSql(`UPDATE connections SET name = 'mine' WHERE name = '${SHARED.name}'`);
      const damaged: Connection = { ...SHARED, name: 'mine', title: 'mine', origin: 'added', damaged: true };
      {
        await using store = await place.open();
        expect(await store.registry.connections()).toEqual([damaged]);
        expect(await store.registry.save({ updatedConnections: [{ ...damaged, name: 'ours' }] })).toBe(true);
      }
      await using store = await place.open();
      expect(await store.registry.connections()).toEqual([{ ...damaged, name: 'ours', title: 'ours' }]);
    });

    test('a removed connection takes its grant, its pairings and its history with it, and no others', async () => {
      await using place = await newPlace();
      await using store = await withShared(place);
      const other = ownConnection(FRIDGE);
      await store.registry.save({ addedConnections: [other] });
      for (const { id } of [SHARED, other]) {
        await store.pairings.save(samplePairing({ kind: 'waiting', link: SAMPLE_LINK }, { id, connection: id }));
        await store.history.add(new Map([[id, [HISTORY_ENTRY]]]));
      }
      await store.grants.replace(sampleGrant({ connection: other.id }));
      const removed = { removedAppliances: [DASHBOARD.id, THERMOSTAT.id], removedConnections: [SHARED.id] };
      expect(await store.registry.save(removed)).toBe(true);
      expect(await contentOf(store)).toMatchObject({ connections: [other], appliances: [], grants: [other.id] });
      expect((await store.pairings.all()).map(({ connection }) => connection)).toEqual([other.id]);
      expect(await store.history.lines(SHARED.id)).toEqual([]);
      expect(await store.history.lines(other.id)).toEqual([HISTORY_ENTRY]);
      expect(await generationOf(store, SHARED.id)).toBe(0);
    });

    test('one hub has the lease for the work of all', async () => {
      await using place = await newPlace();
      await using store = await withShared(place);
      expect(await store.sessions.all(new Set())).toEqual([]);
      expect([await store.holdLease('notices'), await store.holdLease('notices')]).toEqual([true, true]);
    });

    test('an appliance is removed, or moved to another connection, without touching the grant', async () => {
      await using place = await newPlace();
      await using store = await withShared(place);
      await store.sessions.save(sampleSession(THERMOSTAT, 'thermostat'));
      expect(await store.registry.save({ removedAppliances: [DASHBOARD.id] })).toBe(true);
      const own = ownConnection(HEATER);
      expect(await store.registry.save({ addedConnections: [own], updatedAppliances: [HEATER] })).toBe(true);
      expect(await contentOf(store)).toMatchObject({
        connections: [own, SHARED],
        appliances: [HEATER],
        grants: [SHARED.id],
        sessions: ['hash-thermostat'],
      });
    });
  });

  describe('change of connections and appliances', () => {
    const own = ownConnection(FRIDGE);

    test.each<[string, RegistryChange]>([
      ['the name of an added connection is taken', { addedConnections: [{ ...own, name: SHARED.name }] }],
      ['an updated connection does not exist', { updatedConnections: [{ ...SHARED, id: HEATER.id, name: 'unknown' }] }],
      ['the name of an added appliance is taken', { addedAppliances: [{ ...FRIDGE, name: DASHBOARD.name }] }],
      ['the connection of an added appliance does not exist', { addedAppliances: [{ ...FRIDGE, connection: 'none' }] }],
      [
        'the client_id of another one is taken',
        { updatedAppliances: [{ ...DASHBOARD, clientId: THERMOSTAT.clientId }] },
      ],
      ['a removed connection is in use', { removedConnections: [SHARED.id], removedAppliances: [DASHBOARD.id] }],
      ['its invite was used', { usedInvite: 'another' }],
    ])('a change of which %s is rejected as a whole', async (_, change) => {
      await using place = await newPlace();
      await using store = await withShared(place);
      const before = await contentOf(store);
      const added = { id: '99999999-9999-4999-8999-999999999999', name: 'added' };
      const possible: RegistryChange = {
        addedConnections: [{ ...own, ...added }, ...(change.updatedConnections === undefined ? [] : [own])],
        updatedConnections: [{ ...SHARED, scope: null }],
        addedAppliances: [{ ...FRIDGE, ...added, clientId: 'added', connection: added.id }],
        updatedAppliances: [{ ...THERMOSTAT, credentials: { kind: 'none' } }],
        removedAppliances: [DASHBOARD.id],
        usedInvite: INVITE.hash,
      };
      const lists = Object.entries(change).map(([member, value]) => {
        const others: unknown = Reflect.get(possible, member);
        return [member, Array.isArray(others) && Array.isArray(value) ? [...others, ...value] : value];
      });
      expect(await store.registry.save({ ...possible, ...Object.fromEntries(lists) })).toBe(false);
      expect(await contentOf(store)).toEqual(before);
      // The same without that part is possible.
      expect(await store.registry.save(possible)).toBe(true);
    });
  });
});
