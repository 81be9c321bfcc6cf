import { expect, test } from 'vitest';
import type { PostgresStore } from '../../../src/store/postgres/postgres-store.ts';
import { systemClock } from '../../../src/system/clock.ts';
import { instantAt, sampleGrant } from '../../core/samples.ts';
import { HUB_A, HUB_B, openSiteStore, siteAddress } from '../../site/site-harness.ts';
import { addAppliance, WALLBOX } from '../../store/test-store.ts';
import { postgresSkipReason } from '../../support/postgres/cluster.ts';
import { PostgresProxy } from '../../support/postgres/proxy.ts';
import { type PostgresServer, startPostgres } from '../../support/postgres/server.ts';
import { addStandby } from '../../support/postgres/standby.ts';
import { skipIfUnavailable } from '../../support/set-up.ts';
import { waitFor } from '../../support/wait-for.ts';

skipIfUnavailable(postgresSkipReason);

const { id } = WALLBOX;
const attempt = { token: 'hash', at: instantAt(1) };

/** Two hubs of a site with a server of their own. */
async function startSite() {
  const parts = new AsyncDisposableStack();
  const server = parts.use(await startPostgres({ tls: false }));
  const database = await server.createDatabase();
  const address = siteAddress(database);
  const a = parts.use(await openSiteStore(address, HUB_A));
  const b = parts.use(await openSiteStore(address, HUB_B));
  await addAppliance(a, WALLBOX);
  await a.grants.replace(sampleGrant());
  await b.grants.all();
  return { server, database, address, a, b, [Symbol.asyncDispose]: () => parts.disposeAsync() };
}

/** Resolves when a hub can use the database again. */
function returnOf(store: PostgresStore): Promise<void> {
  return new Promise((resolve) => store.watch({ returned: resolve }));
}

const countConnections = async (server: PostgresServer, name: string) =>
  Number(await server.sql('postgres', `SELECT count(*) FROM pg_stat_activity WHERE datname = '${name}';`));

/**
 * The most connections that two hubs keep: four each for reads and writes, one for heartbeats, and one that listens.
 */
const MAX_CONNECTIONS = 2 * (4 + 1 + 1);

test('a hub that starts, or returns to the database, ends no lease of another hub that may be about to return', async () => {
  await using site = await startSite();
  const { server, database, a, b } = site;
  await a.grants.beginAttempt(sampleGrant(), attempt);
  await server.sql(database, "UPDATE latchkey.grants SET leased_until = clock_timestamp() - interval '1 min'");
  const leaseEnd = async (hub: PostgresStore) => (await hub.grants.get(id))?.attempt?.leasedUntil ?? Number.NaN;
  await using started = await openSiteStore(site.address, 'latchkey-0000000c');
  expect((await leaseEnd(started)) - systemClock('any').now().uptime).toBeGreaterThan(0);
  const returned = returnOf(b);
  await server.restart('immediate');
  await returned;
  expect((await leaseEnd(b)) - systemClock('any').now().uptime).toBeGreaterThan(0);
});

test('a hub that returns to the database uses no connection of before, which may lead to a server that was replaced', async () => {
  await using site = await startSite();
  const { server, database, a } = site;
  await Promise.all(Array.from({ length: 8 }, () => a.settings.getAll(['a setting'])));
  const where = `datname = '${database.name}' AND application_name LIKE '%${HUB_A}%'`;
  const processes = async () =>
    (await server.sql('postgres', `SELECT pid FROM pg_stat_activity WHERE ${where};`)).split('\n').filter(Boolean);
  const before = await processes();
  expect(before.length).toBeGreaterThan(2);
  const returned = returnOf(a);
  // Only the one that listens.
  await server.sql(
    'postgres',
    `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE ${where} ORDER BY backend_start LIMIT 1;`,
  );
  await returned;
  await a.settings.getAll(['a setting']);
  await waitFor(async () => expect((await processes()).filter((pid) => before.includes(pid))).toEqual([]), 10_000);
});

test('the hubs go on by themselves after the server was killed and started again, and miss nothing', async () => {
  await using site = await startSite();
  const { a, b, server } = site;
  const returns = [returnOf(a), returnOf(b)];
  const news: string[] = [];
  b.watch({ news: async ({ grants }) => void news.push(...grants) });
  await server.kill();
  await server.start();
  await Promise.all(returns);
  expect(await a.grants.replace(sampleGrant({ generation: 2 }))).toBe(true);
  await expect.poll(() => news).toContain(id);
  expect(await b.grants.get(id)).toMatchObject({ grant: { generation: 2, doubt: null } });
  expect(await countConnections(server, site.database.name)).toBeLessThanOrEqual(MAX_CONNECTIONS);
});

test('what one hub wrote while another one could not reach the database is news when it can', async () => {
  await using site = await startSite();
  await using proxy = await PostgresProxy.start(site.server);
  await using c = await openSiteStore(siteAddress(site.database, proxy), 'latchkey-0000000c');
  const order: string[] = [];
  c.watch({ news: async ({ grants }) => void (grants.size > 0 && order.push('news')) });
  c.watch({ returned: () => order.push('return') });
  proxy.refuse();
  await expect.poll(() => c.writeProblem).not.toBeNull();
  await site.a.grants.replace(sampleGrant({ generation: 2 }));
  await expect(c.grants.beginAttempt(sampleGrant(), attempt)).rejects.toMatchObject({ code: 'store_unwritable' });
  proxy.pass();
  await expect.poll(() => order).toEqual(['news', 'return']);
  expect(c.writeProblem).toBeNull();
});

/** Everything that a hub does at once when the database hangs: all of it ends. */
async function useHangingDatabase(a: PostgresStore): Promise<void> {
  const calls = [
    a.grants.beginAttempt(sampleGrant(), attempt),
    a.settings.save({ setup_code: 'another code' }),
    a.history.add(new Map([[id, []]])),
    a.grants.rejectAccessToken(id, 1, instantAt(5)),
    ...Array.from({ length: 20 }, () => a.holdLease('notices')),
  ];
  for (const { status } of await Promise.allSettled(calls)) expect(status).toBe('rejected');
  expect(a.writeProblem).not.toBeNull();
}

test('every call of a hub ends while the server is paused, and it goes on by itself afterwards', async () => {
  await using site = await startSite();
  const { a, b, server } = site;
  const returns = [returnOf(a), returnOf(b)];
  await server.pause();
  await useHangingDatabase(a);
  await waitFor(() => expect(b.writeProblem).not.toBeNull(), 30_000);
  await server.resume();
  await Promise.all(returns);
  expect(await b.grants.get(id)).toMatchObject({ attempt: null });
  await a.grants.get(id);
  expect(await a.grants.beginAttempt(sampleGrant(), attempt)).toMatchObject({ kind: 'begun' });
  expect(await b.settings.get('setup_code')).toSatisfy((code) => code === null || code === 'another code');
  await waitFor(async () => {
    expect(await countConnections(server, site.database.name)).toBeLessThanOrEqual(MAX_CONNECTIONS);
  });
}, 400_000);

test('no connections pile up while commits wait for a standby that does not answer, and their outcomes are what happened', async () => {
  await using site = await startSite();
  const { a, b, server, database, address } = site;
  await using standby = await addStandby(server, { synchronous: true });
  const returns = [returnOf(a), returnOf(b)];
  await standby.server.pause();
  await useHangingDatabase(a);
  await waitFor(() => expect(b.writeProblem).not.toBeNull(), 30_000);
  // A hub that starts meanwhile gives up, and again, and keeps no lock.
  for (let start = 0; start < 2; start += 1) {
    await expect(openSiteStore(address, 'latchkey-0000000c')).rejects.toMatchObject({ code: 'database_unavailable' });
  }
  expect(await countConnections(server, database.name)).toBeLessThanOrEqual(MAX_CONNECTIONS + 1);
  await standby.server.resume();
  await Promise.all(returns);
  await using c = await openSiteStore(address, 'latchkey-0000000c');
  for (const hub of [a, b, c]) expect(await hub.grants.get(id)).toMatchObject({ attempt: null });
  expect(await a.grants.beginAttempt(sampleGrant(), attempt)).toMatchObject({ kind: 'begun' });
}, 400_000);
