import { describe, expect, test } from 'vitest';
import { Secret } from '../../../src/core/secret.ts';
import { instantAt, SAMPLE_LINK, sampleGrant, samplePairing } from '../../core/samples.ts';
import { completePairing, generationOf } from '../../support/stored-grants.ts';
import { addAppliance, HEATER, removeAppliance, WALLBOX } from '../test-store.ts';
import { type ContractStore, describeStores, type StorePlace } from './contract-store.ts';

const first = sampleGrant({ connection: WALLBOX.id, generation: 1 });
const attemptAt = (uptime: number) => ({ token: 'hash-of-the-refresh-token', at: instantAt(uptime) });
const next = (generation: number, refreshToken = `refresh-token-${generation}`) =>
  sampleGrant({ connection: WALLBOX.id, generation, refreshToken: new Secret(refreshToken) });

const WHOLE = {
  requestedScope: 'Monitoring',
  account: 'somebody@portal.example',
  idToken: new Secret('the-id-token'),
  accessTokenRejectedAt: instantAt(7),
  refreshTokenLifetime: 604_800_000,
  login: { pairing: 'a-pairing', at: instantAt(1), portalTime: 7, refreshTokenLifetime: 9 },
};

async function withWallbox(place: StorePlace): Promise<ContractStore> {
  const store = await place.open();
  await addAppliance(store, WALLBOX);
  return store;
}

async function refreshToken(store: ContractStore): Promise<string | undefined> {
  return (await store.grants.get(WALLBOX.id))?.grant.refreshToken?.reveal();
}

describeStores('grants', (newPlace) => {
  test.each([
    ['with all that may be absent', WHOLE],
    ['in doubt', { doubt: { lostAt: instantAt(5), sends: 2 } }],
    ['refused', { refused: instantAt(6) }],
    ['that is misconfigured', { misconfigured: instantAt(8) }],
    ['without what may be absent', { scope: null, portalTime: null, refreshToken: null }],
    ['with strange tokens', { accessToken: new Secret('ü"\\\u0000😀'), refreshToken: new Secret('x'.repeat(50_000)) }],
  ])('a grant %s is read back after the store is reopened', async (_, changes) => {
    await using place = await newPlace();
    const grant = { ...first, ...changes };
    {
      await using store = await withWallbox(place);
      expect(await store.grants.replace(grant)).toBe(true);
      expect(await store.grants.beginAttempt(grant, attemptAt(9))).toMatchObject({ kind: 'begun' });
    }
    await using store = await place.open();
    const [stored] = await store.grants.all();
    expect(stored).toEqual({ grant, attempt: attemptAt(9) });
    expect(stored?.grant.accessToken.reveal()).toBe(grant.accessToken.reveal());
    expect(stored?.grant.refreshToken?.reveal()).toBe(grant.refreshToken?.reveal());
    expect(stored?.grant.idToken?.reveal()).toBe(grant.idToken?.reveal());
    expect(await store.grants.get(WALLBOX.id)).toEqual(stored);
  });

  describe('generation check of grant writes', () => {
    test('a write of a grant changes nothing if another generation is stored', async () => {
      await using place = await newPlace();
      await using store = await withWallbox(place);
      expect(await store.grants.replace(next(2))).toBe(false);
      expect(await store.grants.all()).toEqual([]);
      await store.grants.replace(first);
      await store.grants.replace(next(2));
      const before = await store.grants.all();
      expect(await store.grants.replace(first)).toBe(false);
      expect(await store.grants.replace(next(2, 'late'))).toBe(false);
      expect(await store.grants.replace(next(4))).toBe(false);
      expect(await store.grants.beginAttempt(first, attemptAt(9))).toEqual({ kind: 'superseded' });
      expect(await store.grants.endAttempt({ ...first, refused: instantAt(9) })).toBe(false);
      expect(await store.grants.rejectAccessToken(WALLBOX.id, 1, instantAt(9))).toBe(false);
      expect((await store.grants.forget(WALLBOX.id, 1)).generation).toBe(2);
      expect(await store.grants.all()).toEqual(before);
      expect(await generationOf(store, WALLBOX.id)).toBe(2);
    });

    test('new tokens end the attempt, and so does a failure, which is stored with its meaning', async () => {
      await using place = await newPlace();
      await using store = await withWallbox(place);
      await store.grants.replace(first);
      await store.grants.beginAttempt(first, attemptAt(9));
      const doubt = { lostAt: instantAt(9), sends: 1 };
      const meaning = { doubt, misconfigured: instantAt(9) };
      expect(await store.grants.endAttempt({ ...first, ...meaning })).toBe(true);
      expect(await store.grants.get(WALLBOX.id)).toMatchObject({ attempt: null, grant: { ...meaning, refused: null } });
      await store.grants.beginAttempt({ ...first, doubt: { ...doubt, sends: 2 } }, attemptAt(10));
      expect(await store.grants.get(WALLBOX.id)).toMatchObject({
        attempt: attemptAt(10),
        grant: { doubt: { sends: 2 } },
      });
      expect(await store.grants.replace(next(2))).toBe(true);
      expect(await store.grants.get(WALLBOX.id)).toMatchObject({
        attempt: null,
        grant: { doubt: null, generation: 2 },
      });
    });

    test('a grant that is imported is stored with its attempt, or not at all', async () => {
      await using place = await newPlace();
      await using store = await withWallbox(place);
      const elsewhere = () => ({ ...first, connection: HEATER.id });
      expect(await store.grants.beginImport(HEATER.id, elsewhere, attemptAt(9))).toMatchObject({ kind: 'superseded' });
      expect(await store.grants.all()).toEqual([]);
      const create = (generation: number) => ({ ...first, generation });
      expect(await store.grants.beginImport(WALLBOX.id, create, attemptAt(9))).toMatchObject({ kind: 'begun' });
      expect(await store.grants.all()).toEqual([{ grant: first, attempt: attemptAt(9) }]);
      expect(await store.grants.beginImport(WALLBOX.id, create, attemptAt(10))).toEqual({ kind: 'superseded' });
      expect(await store.grants.replace(next(2))).toBe(true);
      expect(await store.grants.get(WALLBOX.id)).toMatchObject({ attempt: null, grant: { generation: 2 } });
    });

    test('a rejected access token stays rejected until another one replaces it', async () => {
      await using place = await newPlace();
      await using store = await withWallbox(place);
      await store.grants.replace(first);
      expect(await store.grants.rejectAccessToken(WALLBOX.id, 1, instantAt(9))).toBe(true);
      await store.grants.beginAttempt(first, attemptAt(10));
      await store.grants.endAttempt(first);
      expect(await store.grants.all()).toEqual([
        { grant: { ...first, accessTokenRejectedAt: instantAt(9) }, attempt: null },
      ]);
      expect(await store.grants.replace({ ...next(2), accessTokenRejectedAt: instantAt(9) })).toBe(true);
      expect(await store.grants.get(WALLBOX.id)).toMatchObject({ grant: { accessTokenRejectedAt: instantAt(9) } });
      const ended = samplePairing({ kind: 'ended', result: { kind: 'paired', scope: null } });
      expect(await completePairing(store, ended, next(3))).toBe(true);
      expect(await store.grants.get(WALLBOX.id)).toMatchObject({ grant: { accessTokenRejectedAt: null } });
      await store.grants.rejectAccessToken(WALLBOX.id, 3, instantAt(9));
      await store.grants.forget(WALLBOX.id, 3);
      await store.grants.replace(next(5));
      expect(await store.grants.get(WALLBOX.id)).toMatchObject({
        grant: { generation: 5, accessTokenRejectedAt: null },
      });
    });

    test('a deleted grant leaves its generation, so no late response can bring it back', async () => {
      await using place = await newPlace();
      await using store = await withWallbox(place);
      await store.grants.replace(first);
      expect(await store.grants.forget(WALLBOX.id)).toEqual({ generation: 1, grant: first });
      expect(await store.grants.all()).toEqual([]);
      expect(await store.grants.get(WALLBOX.id)).toBeNull();
      expect(await generationOf(store, WALLBOX.id)).toBe(2);
      expect(await store.grants.replace(next(2))).toBe(false);
      expect(await store.grants.beginAttempt(next(2), attemptAt(9))).toEqual({ kind: 'superseded' });
      expect(await store.grants.endAttempt(next(2))).toBe(false);
      expect(await store.grants.rejectAccessToken(WALLBOX.id, 2, instantAt(9))).toBe(false);
      expect(await store.grants.forget(WALLBOX.id)).toEqual({ generation: 2, grant: null });
      expect(await generationOf(store, WALLBOX.id)).toBe(2);
      expect(await store.grants.replace(next(3, 'paired anew'))).toBe(true);
      expect(await store.grants.replace(next(2, 'late'))).toBe(false);
      expect(await refreshToken(store)).toBe('paired anew');
    });
  });

  describe('end of a pairing with its grant', () => {
    const open1 = samplePairing({ kind: 'waiting', link: SAMPLE_LINK });
    const ended = samplePairing({ kind: 'ended', result: { kind: 'paired', scope: null } });

    test('the end of a pairing and its grant are written together', async () => {
      await using place = await newPlace();
      await using store = await withWallbox(place);
      await store.pairings.save(open1);
      expect(await completePairing(store, ended, first)).toBe(true);
      expect(await store.pairings.all()).toEqual([ended]);
      expect(await store.grants.all()).toEqual([{ grant: first, attempt: null }]);
    });

    test('neither the end of a pairing nor its grant is written if one of them fails', async () => {
      await using place = await newPlace();
      await using store = await withWallbox(place);
      await store.grants.replace(first);
      await store.grants.replace(next(2));
      await store.pairings.save(open1);
      expect(await completePairing(store, ended, next(2, 'late'))).toBe(false);
      expect(await store.pairings.all()).toEqual([open1]);
      expect(await refreshToken(store)).toBe('refresh-token-2');
    });
  });

  test('the removal of an appliance deletes its grant and pairings, and no others', async () => {
    await using place = await newPlace();
    await using store = await withWallbox(place);
    await addAppliance(store, HEATER);
    const others = { ...first, connection: HEATER.id };
    const othersPairing = { ...samplePairing({ kind: 'asking' }), id: 'others', connection: HEATER.id };
    await store.grants.replace(first);
    await store.grants.replace(others);
    await store.pairings.save(samplePairing({ kind: 'waiting', link: SAMPLE_LINK }));
    await store.pairings.save(othersPairing);
    await removeAppliance(store, WALLBOX.id);
    expect(await store.registry.appliances()).toEqual([HEATER]);
    expect(await store.grants.all()).toEqual([{ grant: others, attempt: null }]);
    expect(await store.pairings.all()).toEqual([othersPairing]);
    expect(await generationOf(store, WALLBOX.id)).toBe(0);
  });

  test('tokens, settings and login links are nowhere in the clear', async () => {
    await using place = await newPlace();
    await using store = await withWallbox(place);
    await store.settings.save({ setup_code: 'the-setup-code' });
    await store.grants.replace(first);
    const device = { appliance: WALLBOX.id, codeHash: 'hash-of-the-device-code', userCode: 'WDJB-MJHT' };
    const earlier = [{ ...SAMPLE_LINK, codeUrl: `${SAMPLE_LINK.codeUrl}-of-earlier` }];
    await store.pairings.save(samplePairing({ kind: 'waiting', link: SAMPLE_LINK, earlier }, { device }));
    const content = await place.readText();
    expect(content).toContain('wallbox');
    expect(content).not.toMatch(/the-(setup-code|access-token|refresh-token|nonce|state)|sso\/authorize|MJHT/);
  });
});

describeStores('writes for a connection that was removed', (newPlace) => {
  const ended = samplePairing({ kind: 'ended', result: { kind: 'paired', scope: null } });

  test('a grant is not written', async () => {
    await using place = await newPlace();
    await using store = await place.open();
    expect(await store.grants.replace(first)).toBe(false);
    expect(await store.grants.all()).toEqual([]);
    expect(await generationOf(store, WALLBOX.id)).toBe(0);
  });

  test('a login is not completed, and neither its pairing nor its grant is written', async () => {
    await using place = await newPlace();
    await using store = await withWallbox(place);
    await store.pairings.save(samplePairing({ kind: 'waiting', link: SAMPLE_LINK }));
    await removeAppliance(store, WALLBOX.id);
    expect(await completePairing(store, ended, first)).toBe(false);
    expect([await store.grants.all(), await store.pairings.all()]).toEqual([[], []]);
    expect(store.writeProblem).toBeNull();
  });
});
