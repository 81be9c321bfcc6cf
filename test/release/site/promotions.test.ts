import { expect, test } from 'vitest';
import { Secret } from '../../../src/core/secret.ts';
import type { PostgresStore } from '../../../src/store/postgres/postgres-store.ts';
import { instantAt, sampleGrant } from '../../core/samples.ts';
import { HUB_A, HUB_B, openSiteStore, siteAddress, useSiteServer } from '../../site/site-harness.ts';
import { addAppliance, FRIDGE, HEATER, ownConnection, WALLBOX } from '../../store/test-store.ts';
import { postgresSkipReason } from '../../support/postgres/cluster.ts';
import { PostgresProxy } from '../../support/postgres/proxy.ts';
import { startPostgres } from '../../support/postgres/server.ts';
import { addStandby } from '../../support/postgres/standby.ts';
import { skipIfUnavailable } from '../../support/set-up.ts';

const siteServer = useSiteServer();
skipIfUnavailable(postgresSkipReason);

/** As long after a switch to another server. */
const SETTLED = "UPDATE latchkey.site SET switched_at = clock_timestamp() - interval '10 min'";
const attempt = { token: 'hash', at: instantAt(1) };
const grantOf = ({ connection }: { connection: string }, generation: number) =>
  sampleGrant({ connection, generation, refreshToken: new Secret(`refresh-token-${generation}`) });

/** A primary and a standby, and two hubs whose connections lead to the server that is the primary. */
async function startSite(synchronous: boolean) {
  const parts = new AsyncDisposableStack();
  const primary = parts.use(await startPostgres({ tls: false }));
  const database = await primary.createDatabase();
  const proxies = {
    a: parts.use(await PostgresProxy.start(primary)),
    b: parts.use(await PostgresProxy.start(primary)),
  };
  const address = siteAddress(database, proxies.a);
  const standby = parts.use(await addStandby(primary, { synchronous }));
  const a = parts.use(await openSiteStore(address, HUB_A));
  const b = parts.use(await openSiteStore(siteAddress(database, proxies.b), HUB_B));
  for (const appliance of [WALLBOX, HEATER]) {
    await addAppliance(a, appliance);
    await a.grants.replace(grantOf(appliance, 1));
  }
  await b.grants.all();
  const news = { a: [] as boolean[], b: [] as boolean[] };
  a.watch({ news: async ({ all }) => void (all && news.a.push(all)) });
  b.watch({ news: async ({ all }) => void (all && news.b.push(all)) });
  return {
    primary,
    standby,
    database,
    address,
    a,
    b,
    news,
    /** The primary's machine is lost, and the standby becomes the primary. */
    async failOver(): Promise<void> {
      const returned = [a, b].map(whenReturned);
      await primary.kill();
      await standby.promote();
      for (const proxy of [proxies.a, proxies.b]) proxy.redirect(standby.server);
      await Promise.all(returned);
    },
    proxies,
    [Symbol.asyncDispose]: () => parts.disposeAsync(),
  };
}

const whenReturned = (store: PostgresStore) => new Promise<void>((resolve) => store.watch({ returned: resolve }));

const find = async (store: PostgresStore, { connection }: { connection: string }) =>
  (await store.grants.find(new Set([connection]))).get(connection);

test('a promoted synchronous standby has lost nothing, and no grant is in doubt', async () => {
  await using site = await startSite(true);
  const { a, b } = site;
  await a.grants.beginAttempt(grantOf(HEATER, 1), attempt);
  await a.grants.beginAttempt(grantOf(WALLBOX, 1), attempt);
  expect(await a.grants.replace(grantOf(WALLBOX, 2))).toBe(true);
  await site.failOver();
  await using fresh = await openSiteStore(site.address, 'latchkey-0000000c');
  for (const hub of [a, b, fresh]) {
    expect(await find(hub, WALLBOX)).toMatchObject({
      hasLostWrites: false,
      stored: { grant: { generation: 2, doubt: null }, attempt: null },
    });
    expect(await find(hub, HEATER)).toMatchObject({ stored: { grant: { doubt: null }, attempt: { token: 'hash' } } });
  }
  expect(await b.grants.beginAttempt(grantOf(HEATER, 1), attempt)).toMatchObject({ kind: 'under_way' });
  expect(await b.grants.beginAttempt(grantOf(WALLBOX, 2), attempt)).toMatchObject({ kind: 'begun' });
  expect(site.news).toEqual({ a: [true], b: [true] });
});

test('what a promoted standby has lost is noticed by every hub, put back, and in doubt until it is refreshed', async () => {
  await using site = await startSite(false);
  const { a, b, standby } = site;
  await a.registry.save({ addedConnections: [ownConnection(FRIDGE)] });
  await standby.catchUp(site.primary);
  await standby.pauseReplication();
  expect(await a.grants.replace(grantOf(WALLBOX, 2))).toBe(true);
  expect(await a.grants.beginAttempt(grantOf(WALLBOX, 2), attempt)).toMatchObject({ kind: 'begun' });
  expect(await a.grants.replace(grantOf(FRIDGE, 1))).toBe(true);
  await b.grants.all();
  await site.failOver();
  expect(site.news).toEqual({ a: [true], b: [true] });

  await using fresh = await openSiteStore(site.address, 'latchkey-0000000c');
  const heard: string[] = [];
  fresh.watch({ news: async ({ grants }) => void heard.push(...grants) });
  for (const appliance of [WALLBOX, HEATER]) {
    expect(await find(fresh, appliance)).toMatchObject({
      hasLostWrites: false,
      stored: { grant: { generation: 1, doubt: { kind: 'copy' } }, attempt: null },
    });
  }
  for (const hub of [a, b]) {
    expect(await find(hub, WALLBOX)).toMatchObject({
      hasLostWrites: true,
      stored: { grant: { generation: 1, doubt: { kind: 'copy' } } },
    });
    expect(await hub.grants.beginAttempt(grantOf(WALLBOX, 2), attempt)).toEqual({ kind: 'superseded' });
  }
  // A hub that is told of the end of its attempt meanwhile can still save its tokens, see below.
  const held = [grantOf(WALLBOX, 2), grantOf(HEATER, 1), grantOf(FRIDGE, 1)];
  await b.grants.reconcile(held);
  await a.grants.reconcile(held);
  // Another hub may know more, and come back a little later.
  await standby.server.sql(site.database, 'UPDATE latchkey.site SET switched_at = clock_timestamp()');
  const doubt = { kind: 'copy', lostAt: instantAt(2), sends: 0 } as const;
  for (const appliance of [HEATER, FRIDGE]) {
    expect(await find(a, appliance)).toMatchObject({ hasLostWrites: false });
    expect(await a.grants.beginAttempt({ ...grantOf(appliance, 1), doubt }, attempt)).toEqual({
      kind: 'under_way',
      until: expect.any(Number),
    });
  }
  await standby.server.sql(site.database, SETTLED);
  await fresh.catchUp();
  expect(heard.toSorted()).toEqual([WALLBOX, FRIDGE].map(({ connection }) => connection).toSorted());
  for (const [appliance, generation] of [
    [WALLBOX, 2],
    [HEATER, 1],
    [FRIDGE, 1],
  ] as const) {
    const found = await find(fresh, appliance);
    expect(found).toMatchObject({ stored: { grant: { generation, doubt: { kind: 'copy' } } } });
    expect(found?.stored.grant.refreshToken?.reveal()).toBe(`refresh-token-${generation}`);
  }
  // The attempt that was open is open again, so that no other hub sends the same refresh token.
  expect(await find(fresh, WALLBOX)).toMatchObject({
    stored: { attempt: { token: 'hash', leasedUntil: expect.any(Number) } },
  });
  expect(await fresh.grants.beginAttempt({ ...grantOf(WALLBOX, 2), doubt }, attempt)).toMatchObject({
    kind: 'under_way',
  });
  expect(await a.grants.replace(grantOf(WALLBOX, 3))).toBe(true);
  expect(await find(fresh, WALLBOX)).toMatchObject({
    stored: { grant: { generation: 3, doubt: null }, attempt: null },
  });
});

test('a server that was replaced, and is used again, is not trusted', async () => {
  await using site = await startSite(false);
  const { primary, standby, a, proxies } = site;
  const switched = 'UPDATE latchkey.site SET switched_at =';
  // As a month after a promotion, on both servers.
  await primary.sql(site.database, `${switched} clock_timestamp() - interval '30 days'`);
  await standby.catchUp(primary);
  await site.failOver();
  await standby.server.sql(site.database, `${switched} switched_at - interval '1 hour'`);
  await a.grants.replace(grantOf(WALLBOX, 2));
  const returned = [a, site.b].map(whenReturned);
  await standby.server.kill();
  await primary.start();
  for (const proxy of [proxies.a, proxies.b]) proxy.redirect(primary);
  await Promise.all(returned);
  expect(await primary.sql(site.database, 'SELECT DISTINCT confirmed FROM latchkey.grants')).toBe('f');
});

test('a standby for which commits waited no longer is not trusted', async () => {
  await using site = await startSite(true);
  const { a, standby, primary } = site;
  await standby.catchUp(primary);
  // As a failover manager does when the standby is not reachable.
  await primary.sql('postgres', 'ALTER SYSTEM RESET synchronous_standby_names; SELECT pg_reload_conf();');
  await standby.pauseReplication();
  expect(await a.grants.replace(grantOf(WALLBOX, 2))).toBe(true);
  // Each hub has a heartbeat that the standby has not received.
  for (const hub of [a, site.b]) {
    const lastSeen = () => hub.site.hubs.find(({ id }) => id === hub.site.hubId)?.lastSeen ?? 0;
    const before = lastSeen();
    hub.site.announce({ name: hub.site.hubId, address: null, version: '1' });
    await expect.poll(lastSeen).toBeGreaterThan(before);
  }
  await site.failOver();
  await using fresh = await openSiteStore(site.address, 'latchkey-0000000c');
  expect(await find(fresh, HEATER)).toMatchObject({ stored: { grant: { doubt: { kind: 'copy' } } } });
  expect(await find(a, WALLBOX)).toMatchObject({ hasLostWrites: true });
});

test('a refresh does not begin on a server that no hub has compared with the former one', async () => {
  const server = await siteServer();
  const database = await server.createDatabase();
  await using store = await openSiteStore(siteAddress(database), HUB_A);
  await addAppliance(store, WALLBOX);
  await store.grants.replace(grantOf(WALLBOX, 1));
  const returned = whenReturned(store);
  await server.sql(database, "UPDATE latchkey.site SET server = 'of the former one'");
  await expect(store.grants.beginAttempt(grantOf(WALLBOX, 1), attempt)).rejects.toMatchObject({
    code: 'store_unwritable',
  });
  await returned;
  expect(await find(store, WALLBOX)).toMatchObject({
    stored: { grant: { doubt: { kind: 'copy' } }, attempt: null },
  });
});

test('a hub that is back late does not write a former login over a new one', async () => {
  await using site = await startSite(false);
  const { a, b, standby, primary, database, proxies } = site;
  const former = { pairing: 'former', at: instantAt(0), portalTime: null, refreshTokenLifetime: null };
  const formerGrant = (generation: number) => ({ ...grantOf(WALLBOX, generation), login: former });
  expect(await a.grants.replace(formerGrant(2))).toBe(true);
  await b.grants.all();
  await standby.catchUp(primary);
  await standby.pauseReplication();
  for (const generation of [2, 3]) {
    expect(await b.grants.beginAttempt(formerGrant(generation), attempt)).toMatchObject({ kind: 'begun' });
    expect(await b.grants.replace(formerGrant(generation + 1))).toBe(true);
  }
  // Only the first hub finds the new server.
  proxies.b.refuse();
  const returned = whenReturned(a);
  await primary.kill();
  await standby.promote();
  proxies.a.redirect(standby.server);
  await returned;
  await standby.server.sql(database, SETTLED);
  await a.grants.all();
  const login = { ...former, pairing: 'new', at: instantAt(5) };
  const newGrant = { ...grantOf(WALLBOX, 3), refreshToken: new Secret('of-the-new-login'), login };
  expect(await a.grants.replace(newGrant)).toBe(true);
  const returnedLate = whenReturned(b);
  proxies.b.redirect(standby.server);
  proxies.b.pass();
  await returnedLate;
  await standby.server.sql(database, SETTLED);
  await b.grants.find(null);
  await b.grants.reconcile([formerGrant(4)]);
  const found = await find(b, WALLBOX);
  expect(found).toMatchObject({ hasLostWrites: false, stored: { grant: { generation: 3 } } });
  expect(found?.stored.grant.refreshToken?.reveal()).toBe('of-the-new-login');
  expect(await b.grants.beginAttempt(found?.stored.grant ?? newGrant, attempt)).toMatchObject({ kind: 'begun' });
});

test('a hub that is back late does not write what it knows over a refusal', async () => {
  await using site = await startSite(false);
  const { a, b, database, primary } = site;
  await a.grants.beginAttempt(grantOf(WALLBOX, 1), attempt);
  await a.grants.endAttempt({ ...grantOf(WALLBOX, 1), refused: instantAt(3) });
  await b.grants.all();
  await primary.sql(database, SETTLED);
  // As a database that has lost the last writes has it.
  await primary.sql(database, 'UPDATE latchkey.grants SET revision = 1');
  await b.grants.reconcile([grantOf(WALLBOX, 1)]);
  expect((await find(b, WALLBOX))?.stored.grant.refused).toEqual(instantAt(3));
});
