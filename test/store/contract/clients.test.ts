import { describe, expect, test } from 'vitest';
import type { Appliance } from '../../../src/core/appliances/appliance.ts';
import type { Invite } from '../../../src/core/appliances/registration.ts';
import { MAX_SESSIONS } from '../../../src/core/appliances/session.ts';
import { jweSealing } from '../../../src/store/keys/sealing.ts';
import { applianceRowIdentity } from '../../../src/store/rows/registry-rows.ts';
import { instantAt, sampleGrant } from '../../core/samples.ts';
import {
  addAppliance,
  FRIDGE,
  HEATER,
  KEY,
  removeAppliance,
  sampleSession,
  updateAppliance,
  WALLBOX,
} from '../test-store.ts';
import { type ContractStore, describeStores, type StorePlace } from './contract-store.ts';

const INVITE: Invite = {
  hash: 'hash-of-the-invite',
  name: 'wallbox',
  scope: 'Monitoring',
  portal: 'home',
  begun: instantAt(3),
  lifetime: 86_400_000.5,
};

async function withWallbox(place: StorePlace) {
  const store = await place.open();
  await addAppliance(store, WALLBOX);
  return store;
}

const hashesOf = async (store: ContractStore) => (await store.sessions.all()).map(({ hash }) => hash);

describeStores('clients', (newPlace) => {
  describe('appliance rows', () => {
    test.each<[string, Partial<Appliance>]>([
      ['with a secret', {}],
      ['with keys', { credentials: FRIDGE.credentials }],
      ['without credentials', { credentials: { kind: 'none' }, origin: 'declared' }],
      ['that waits for approval', { origin: 'registered', waiting: FRIDGE.waiting, softwareId: 'fridge-ü/2.0' }],
      ["with its maker's client_id", { clientId: 'A-._~9' }],
    ])('an appliance %s is read back as it was written after the store is reopened', async (_, changes) => {
      await using place = await newPlace();
      const appliance = { ...WALLBOX, ...changes };
      {
        await using store = await place.open();
        await addAppliance(store, appliance);
      }
      await using store = await place.open();
      expect(await store.registry.appliances()).toEqual([appliance]);
      expect(store.registry.damagedAppliances.size).toBe(0);
    });

    test('an appliance is read back after all its members have changed, and keeps its grant', async () => {
      await using place = await newPlace();
      await using store = await withWallbox(place);
      const grant = sampleGrant({ connection: WALLBOX.id });
      await store.grants.replace(grant);
      const changed: Appliance = { ...FRIDGE, id: WALLBOX.id, connection: WALLBOX.connection };
      expect(await updateAppliance(store, changed)).toBe(true);
      expect(await store.registry.appliances()).toEqual([changed]);
      expect(await store.grants.all()).toEqual([{ grant, attempt: null }]);
      expect(await updateAppliance(store, { ...changed, credentials: { kind: 'none' }, waiting: null })).toBe(true);
      expect(await store.registry.appliances()).toEqual([{ ...changed, credentials: { kind: 'none' }, waiting: null }]);
    });
  });

  describe('invalid appliance row', () => {
    test.each([
      ['invalid JSON', 'not json'],
      ['an unknown origin', JSON.stringify({ ...WALLBOX, origin: 'found' })],
    ])('an appliance whose row contains %s loses its credentials and does not affect others', async (_, text) => {
      await using place = await newPlace();
      const grant = sampleGrant({ connection: WALLBOX.id });
      {
        await using store = await withWallbox(place);
        await addAppliance(store, HEATER);
        await store.grants.replace(grant);
        await store.settings.save({ hub_id: 'the hub' });
      }
      const identity = applianceRowIdentity({ ...WALLBOX, client_id: WALLBOX.clientId });
      await place.runSql(
        `UPDATE appliances SET sealed = '${jweSealing(KEY).seal(identity, text)}' WHERE name = 'wallbox'`,
      );
      await using store = await place.open();
      expect(await store.registry.appliances()).toMatchObject([
        HEATER,
        { id: WALLBOX.id, name: 'wallbox', credentials: { kind: 'none' }, origin: 'added', waiting: null },
      ]);
      expect([...store.registry.damagedAppliances]).toEqual([WALLBOX.id]);
      expect(await store.grants.all()).toEqual([{ grant, attempt: null }]);
      expect(store.recoverySummary).toBeNull();
      // No update may use this row: it may belong to another appliance, with another grant.
      expect(await updateAppliance(store, WALLBOX)).toBe(true);
      expect(await store.registry.appliances()).toMatchObject([
        HEATER,
        { credentials: { kind: 'none', damaged: true } },
      ]);
      expect([...store.registry.damagedAppliances]).toEqual([WALLBOX.id]);
      await removeAppliance(store, WALLBOX.id);
      expect(store.registry.damagedAppliances.size).toBe(0);
      expect(await addAppliance(store, WALLBOX)).toBe(true);
      expect(await store.registry.appliances()).toEqual([HEATER, WALLBOX]);
    });
  });

  describe('invites', () => {
    test('an invite is read back as it was written until it is removed', async () => {
      await using place = await newPlace();
      const open_ = { ...INVITE, hash: 'another', name: null, scope: null, connection: 'solar' };
      {
        await using store = await place.open();
        await store.invites.save(INVITE);
        await store.invites.save(open_);
      }
      await using store = await place.open();
      expect(await store.invites.all()).toEqual([open_, INVITE]);
      await store.invites.remove(INVITE.hash);
      await store.invites.remove('of nobody');
      expect(await store.invites.all()).toEqual([open_]);
    });

    test('an invite is used up by one appliance, even if two use it at the same time', async () => {
      await using place = await newPlace();
      await using store = await place.open();
      await store.invites.save(INVITE);
      const both = [addAppliance(store, WALLBOX, INVITE.hash), addAppliance(store, HEATER, INVITE.hash)];
      expect((await Promise.all(both)).toSorted()).toEqual([false, true]);
      expect(await store.registry.appliances()).toHaveLength(1);
      expect(await store.invites.all()).toEqual([]);
    });
  });

  describe('sessions', () => {
    test('a session is read back as it was written until it is ended', async () => {
      await using place = await newPlace();
      const [one, two] = [sampleSession(WALLBOX, 'one'), { ...sampleSession(WALLBOX, 'two'), connection: 'netatmo' }];
      {
        await using store = await withWallbox(place);
        await store.sessions.save(two);
        await store.sessions.save(one);
      }
      await using store = await place.open();
      expect(await store.sessions.all()).toEqual([two, one]);
      expect(await store.sessions.end(two.hash)).toBe(true);
      expect(await store.sessions.end(two.hash)).toBe(false);
      expect(await store.sessions.all()).toEqual([one]);
    });

    test('a session replaces the one of the same device flow', async () => {
      await using place = await newPlace();
      await using store = await withWallbox(place);
      const first = sampleSession(WALLBOX, 'one');
      await store.sessions.save(first);
      await store.sessions.save(sampleSession(WALLBOX, 'two'));
      await store.sessions.save({ ...first, hash: 'hash-of-another', begun: instantAt(9) });
      expect(await hashesOf(store)).toEqual(['hash-two', 'hash-of-another']);
    });

    test('a new session replaces the oldest beyond the limit, and none of another appliance or connection', async () => {
      await using place = await newPlace();
      await using store = await withWallbox(place);
      await addAppliance(store, HEATER);
      await store.sessions.save(sampleSession(HEATER, 'heater'));
      await store.sessions.save({ ...sampleSession(WALLBOX, 'netatmo'), connection: 'netatmo' });
      for (let i = 1; i <= MAX_SESSIONS + 3; i++) await store.sessions.save(sampleSession(WALLBOX, `${i}`));
      await store.sessions.save(sampleSession(HEATER, 'another'));
      const newest = ['hash-4', 'hash-5', 'hash-6', 'hash-7', 'hash-8'];
      expect(await hashesOf(store)).toEqual(['hash-heater', 'hash-netatmo', ...newest, 'hash-another']);
    });

    test('the sessions of an appliance end when it is removed', async () => {
      await using place = await newPlace();
      await using store = await withWallbox(place);
      await addAppliance(store, HEATER);
      for (const appliance of [WALLBOX, HEATER]) await store.sessions.save(sampleSession(appliance, appliance.name));
      await removeAppliance(store, WALLBOX.id);
      expect(await hashesOf(store)).toEqual(['hash-heater']);
      expect(await store.sessions.save(sampleSession(WALLBOX, 'three'))).toBe(false);
      expect(await hashesOf(store)).toEqual(['hash-heater']);
    });
  });
});
