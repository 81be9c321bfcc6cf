import { expect, test } from 'vitest';
import { linksOf } from '../../../src/core/pairings/pairing.ts';
import type { DeviceLink, RedirectLink } from '../../../src/core/portals/login-link.ts';
import { Secret } from '../../../src/core/secret.ts';
import { instantAt, SAMPLE_LINK, samplePairing } from '../../core/samples.ts';
import { addAppliance, HEATER, WALLBOX } from '../test-store.ts';
import { type ContractStore, describeStores, type StorePlace } from './contract-store.ts';

const DEVICE = {
  appliance: '11111111-1111-4111-8111-111111111111',
  codeHash: 'hash-of-the-device-code',
  userCode: 'WDJB-MJHT',
};
const REDIRECT_LINK: RedirectLink = {
  kind: 'redirect',
  authorizeUrl: 'https://cloud.example/authorize',
  redirect: 'http://192.168.1.7:8480/callback',
  state: 'the-state-of-the-login',
  verifier: new Secret('the-verifier'),
  issuer: 'https://cloud.example',
  requiresIssuer: true,
};
const DEVICE_LINK: DeviceLink = {
  kind: 'device',
  authorizeUrl: 'https://cloud.example/device',
  redirect: null,
  userCode: 'ABCD-EFGH',
  containsUserCode: false,
  deviceCode: new Secret('the-device-code'),
  verifier: new Secret('the-verifier'),
  interval: 5000,
  begun: instantAt(0),
  lifetime: 300_000,
};
const OTHER_LINK = { ...SAMPLE_LINK, codeUrl: `${SAMPLE_LINK.codeUrl}-of-earlier` };

async function withWallbox(place: StorePlace): Promise<ContractStore> {
  const store = await place.open();
  await addAppliance(store, WALLBOX);
  return store;
}

describeStores('pairings', (newPlace) => {
  test.each([
    samplePairing({ kind: 'asking' }, { scope: null }),
    samplePairing({ kind: 'waiting', link: SAMPLE_LINK }, { spentCodes: ['a', 'b'], lastFailure: 'code_refused' }),
    samplePairing({ kind: 'exchanging', link: SAMPLE_LINK, since: instantAt(4) }, { spentCodes: ['c'] }),
    samplePairing({ kind: 'waiting', link: REDIRECT_LINK }, { answeredStates: ['an-earlier-state'] }),
    samplePairing({ kind: 'waiting', link: DEVICE_LINK, earlier: [{ ...REDIRECT_LINK, verifier: null }] }),
    samplePairing({ kind: 'waiting', link: SAMPLE_LINK, earlier: [OTHER_LINK, SAMPLE_LINK] }, { device: DEVICE }),
    samplePairing({ kind: 'ended', result: { kind: 'paired', scope: null } }),
    samplePairing({ kind: 'ended', result: { kind: 'failed', reason: 'answer_lost' } }, { lastFailure: 'answer_lost' }),
  ])('a pairing in step $step.kind is read back after the store is reopened', async (pairing) => {
    await using place = await newPlace();
    {
      await using store = await withWallbox(place);
      await store.pairings.save(samplePairing({ kind: 'asking' }));
      await store.pairings.save(pairing);
    }
    await using store = await place.open();
    expect(await store.pairings.all()).toEqual([pairing]);
  });

  test('the secrets of a login at an OAuth 2.0 portal are read back, and are nowhere in the clear', async () => {
    await using place = await newPlace();
    {
      await using store = await withWallbox(place);
      await store.pairings.save(samplePairing({ kind: 'waiting', link: DEVICE_LINK, earlier: [REDIRECT_LINK] }));
    }
    const content = await place.readText();
    expect(content).toContain('wallbox');
    for (const secret of ['the-verifier', 'the-device-code', 'the-state-of-the-login'])
      expect(content).not.toContain(secret);
    await using store = await place.open();
    const [stored] = await store.pairings.all();
    const [device, redirect] = stored === undefined ? [] : linksOf(stored.step);
    expect(device?.kind === 'device' && device.deviceCode.reveal()).toBe('the-device-code');
    expect(redirect?.kind === 'redirect' && redirect.verifier?.reveal()).toBe('the-verifier');
  });

  test('the store keeps all open pairings and the last five that ended', async () => {
    await using place = await newPlace();
    await using store = await withWallbox(place);
    const open2 = { ...samplePairing({ kind: 'waiting', link: SAMPLE_LINK }), id: 'open' };
    await store.pairings.save(open2);
    for (let i = 0; i < 50; i += 1) {
      const ended = samplePairing({ kind: 'ended', result: { kind: 'failed', reason: 'expired' } });
      await store.pairings.save({ ...ended, id: `ended-${i}` });
    }
    expect((await store.pairings.all()).map(({ id }) => id)).toEqual([
      'open',
      ...['ended-45', 'ended-46', 'ended-47', 'ended-48', 'ended-49'],
    ]);
  });

  test('pairings are read by their ids, and a hub may run those that no other hub runs', async () => {
    await using place = await newPlace();
    await using store = await withWallbox(place);
    const all = ['one', 'two', 'three'].map((id) => samplePairing({ kind: 'asking' }, { id }));
    for (const pairing of all) await store.pairings.save(pairing);
    const [one, two] = all;
    expect(await store.pairings.all(new Set(['two', 'one', 'unknown']))).toEqual([one, two]);
    expect(await store.pairings.all(new Set())).toEqual([]);
    expect([await store.pairings.take('two', false), await store.pairings.take('unknown', true)]).toEqual([two, null]);
    expect(await store.pairings.keep(['one', 'two'])).toEqual([]);
  });

  test('a pairing of a connection that was removed is not saved', async () => {
    await using place = await newPlace();
    await using store = await withWallbox(place);
    const lost = samplePairing({ kind: 'asking' }, { id: 'lost', connection: HEATER.id });
    expect(await store.pairings.save(lost)).toBe(true);
    expect(await store.pairings.all()).toEqual([]);
  });
});
