// The CA of a site, which several hubs create, rotate and end, on a real PostgreSQL server.
import { createPrivateKey, X509Certificate } from 'node:crypto';
import { beforeEach, expect, test } from 'vitest';
import { HubAuthority } from '../../../src/certificates/authority.ts';
import { permittedNames } from '../../../src/certificates/permitted-names.ts';
import { Failure } from '../../../src/core/failure.ts';
import type { PostgresStore } from '../../../src/store/postgres/postgres-store.ts';
import { systemClock } from '../../../src/system/clock.ts';
import { expectSoon } from '../../site/site-brokers.ts';
import { addressOf, openSiteStore, siteServer, useSiteServer } from '../../site/site-harness.ts';

useSiteServer();

const DAY = 86_400_000;
const PERMITTED = permittedNames(['4f2a.local', 'pi'], ['192.168.1.20']);
const { now } = systemClock();

let stores: AsyncDisposableStack;
let address: ReturnType<typeof addressOf>;

beforeEach(async () => {
  address = addressOf((await (await siteServer()).createDatabase()).url);
  stores = new AsyncDisposableStack();
  return () => stores.disposeAsync();
});

const open = async (hub: string): Promise<PostgresStore> => stores.use(await openSiteStore(address, hub));
const load = (store: PostgresStore) => HubAuthority.load(store, () => PERMITTED);
const rotate = (ca: HubAuthority, keep = DAY) => ca.rotate(keep, PERMITTED, now(), [{ at: now(), wall: now().wall }]);

/** Two hubs with their CAs. */
async function startTwo() {
  const [storeA, storeB] = [await open('latchkey-0000000a'), await open('latchkey-0000000b')];
  return { storeA, storeB, a: await load(storeA), b: await load(storeB) };
}

test('hubs that create the CA of their site at once have the same one', async () => {
  const [a, b] = [await open('latchkey-0000000a'), await open('latchkey-0000000b')];
  const created = await Promise.all([load(a), load(b)]);
  expect(created[0]?.authority).toEqual(created[1]?.authority);
  expect((await load(a)).authority).toEqual(created[0]?.authority);
});

test('after a rotation at one hub the other must start again, and then serves the new CA and the old one', async () => {
  const { storeA, storeB, a, b } = await startTwo();
  const news: string[] = [];
  storeB.watch({ news: async ({ settings }) => void news.push(...settings) });
  await rotate(a);
  await expectSoon(() => news.includes('ca_certificate'), true);
  expect([await a.isReplaced(), await b.isReplaced()]).toEqual([false, true]);
  const again = await load(storeB);
  expect([again.authority, again.old]).toEqual([a.authority, a.old]);
  expect(again.old?.certificate).toBe(b.authority.certificate);
  expect(again.authority.certificate).not.toBe(b.authority.certificate);
  // The key of the old CA is not kept.
  expect(await storeA.settings.get('ca_key')).toBe(a.authority.key);
});

test('of two hubs that rotate the CA at once one is refused, and key and certificate belong together', async () => {
  const { storeA, storeB, a, b } = await startTwo();
  const results = await Promise.allSettled([rotate(a), rotate(b)]);
  expect(results.map(({ status }) => status).toSorted()).toEqual(['fulfilled', 'rejected']);
  const [loaded, other] = [await load(storeA), await load(storeB)];
  const winner = results[0]?.status === 'fulfilled' ? a : b;
  expect([loaded.authority, other.authority]).toEqual([winner.authority, winner.authority]);
  const { key, certificate } = loaded.authority;
  expect(new X509Certificate(certificate).checkPrivateKey(createPrivateKey(key))).toBe(true);
  await expect(rotate(winner === a ? b : a, 0)).rejects.toThrow(Failure);
});
