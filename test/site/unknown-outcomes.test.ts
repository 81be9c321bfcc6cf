import { setTimeout as sleep } from 'node:timers/promises';
import { Client } from 'pg';
import { describe, expect, test } from 'vitest';
import type { StoredHistoryEntry } from '../../src/core/reports/history.ts';
import { Secret } from '../../src/core/secret.ts';
import type { PostgresStore } from '../../src/store/postgres/postgres-store.ts';
import { instantAt, SAMPLE_LINK, sampleGrant, samplePairing } from '../core/samples.ts';
import { addAppliance, HEATER, ownConnection, sampleSession, WALLBOX } from '../store/test-store.ts';
import { COMMIT, PostgresProxy } from '../support/postgres/proxy.ts';
import { startPostgres } from '../support/postgres/server.ts';
import { completePairing, generationOf } from '../support/stored-grants.ts';
import { addressOf, fastClock, HUB_A, HUB_B, openSiteStore, siteAddress, useSiteServer } from './site-harness.ts';

const siteServer = useSiteServer();
const { id } = WALLBOX;
const first = sampleGrant();
const second = sampleGrant({ generation: 2, refreshToken: new Secret('the-second-refresh-token') });
const attempt = { token: 'hash', at: instantAt(1) };
const waiting = samplePairing({ kind: 'waiting', link: SAMPLE_LINK });
const paired = samplePairing({ kind: 'ended', result: { kind: 'paired', scope: null } });
const LINE: StoredHistoryEntry = { kind: 'refreshed', why: null, first: 1.95e12, last: 1.95e12, count: 1 };

/** A hub behind a proxy, and one that is not, with a paired appliance and an open pairing. */
async function startHubs({ isFast = true } = {}) {
  const parts = new AsyncDisposableStack();
  const server = await siteServer();
  const database = await server.createDatabase();
  const proxy = parts.use(await PostgresProxy.start(server));
  const hub = parts.use(
    await openSiteStore(siteAddress(database, proxy), HUB_A, isFast ? { clock: fastClock(20) } : {}),
  );
  await addAppliance(hub, WALLBOX);
  await hub.grants.replace(first);
  await hub.pairings.save(waiting);
  const other = parts.use(await openSiteStore(siteAddress(database), HUB_B));
  const sql = (statements: string) => server.sql(database, `SET search_path = latchkey; ${statements}`);
  const returned = Promise.withResolvers<void>();
  hub.watch({ returned: returned.resolve });
  const { url } = database;
  return {
    hub,
    other,
    proxy,
    sql,
    url,
    returned: returned.promise,
    /** The database goes away when this message of the next commit has been lost. */
    goAwayAfter: (message: 'request' | 'response') => void proxy.lose(message, COMMIT).then(() => proxy.refuse()),
    [Symbol.asyncDispose]: () => parts.disposeAsync(),
  };
}

/** A write, its result, and what is stored then, as another hub sees it. */
interface Write {
  readonly what: string;
  readonly write: (hub: PostgresStore) => Promise<unknown>;
  readonly result: unknown;
  readonly stored: (other: PostgresStore) => Promise<unknown>;
  readonly expected: unknown;
}

const third = sampleGrant({ generation: 3 });

/** Each kind of write, in an order in which they follow from each other. */
const WRITES: readonly Write[] = [
  {
    what: 'the beginning of a refresh',
    write: (hub) => hub.grants.beginAttempt(first, attempt),
    result: { kind: 'begun', sendBefore: expect.any(Number) },
    stored: async (other) => (await other.grants.get(id))?.attempt?.token,
    expected: 'hash',
  },
  {
    what: 'the end of a refresh',
    write: (hub) => hub.grants.endAttempt({ ...first, misconfigured: instantAt(7) }),
    result: true,
    stored: async (other) => (await other.grants.get(id))?.grant.misconfigured?.uptime,
    expected: 7,
  },
  {
    what: 'the mark of a rejected token',
    write: (hub) => hub.grants.rejectAccessToken(id, 1, instantAt(7)),
    result: true,
    stored: async (other) => (await other.grants.get(id))?.grant.accessTokenRejectedAt?.uptime,
    expected: 7,
  },
  {
    what: 'a grant',
    write: (hub) => hub.grants.replace(second),
    result: true,
    stored: async (other) => (await other.grants.get(id))?.grant.refreshToken?.reveal(),
    expected: 'the-second-refresh-token',
  },
  {
    what: 'a pairing',
    write: (hub) => hub.pairings.save({ ...waiting, scope: 'Another' }),
    result: true,
    stored: async (other) => (await other.pairings.all()).map(({ scope }) => scope),
    expected: ['Another'],
  },
  {
    what: 'the end of a pairing',
    write: (hub) => completePairing(hub, paired, third),
    result: true,
    stored: async (other) => [(await other.pairings.all()).map(({ step }) => step.kind), await generationOf(other, id)],
    expected: [['ended'], 3],
  },
  {
    what: 'a session',
    write: (hub) => hub.sessions.save(sampleSession(WALLBOX, 'one')),
    result: true,
    stored: async (other) => (await other.sessions.all()).map(({ hash }) => hash),
    expected: ['hash-one'],
  },
  {
    what: 'the deletion of a grant',
    write: async (hub) => (await hub.grants.forget(id, 3)).generation,
    result: 3,
    stored: (other) => generationOf(other, id),
    expected: 4,
  },
  {
    what: 'a change of the registry',
    write: (hub) => hub.registry.save({ addedConnections: [ownConnection(HEATER)], addedAppliances: [HEATER] }),
    result: true,
    stored: async (other) => (await other.registry.appliances()).map(({ name }) => name),
    expected: ['heater', 'wallbox'],
  },
  {
    what: 'a setting',
    write: (hub) => hub.settings.replace({ page_sessions: null }, { page_sessions: 'x' }),
    result: true,
    stored: (other) => other.settings.get('page_sessions'),
    expected: 'x',
  },
  {
    what: 'history',
    write: (hub) => hub.history.add(new Map([[id, [LINE]]])),
    result: undefined,
    stored: (other) => other.history.lines(id),
    expected: [LINE],
  },
];

test.each([
  ['was committed is not written again', 'response', 0],
  ['was not committed is written again', 'request', 1],
] as const)('a write whose connection breaks as it is committed, and that %s', async (_, message, fences) => {
  // With a fast clock, a busy machine has not answered before the hub gives up.
  await using hubs = await startHubs({ isFast: false });
  const { hub, other, proxy, sql } = hubs;
  const counts = "SELECT count(*), count(*) FILTER (WHERE 'fence' = ANY (news)) FROM changes;";
  const read = async () => (await sql(counts)).split('|').map(Number);
  for (const { what, write, result, stored, expected } of WRITES) {
    const [changes = 0, former = 0] = await read();
    const lost = proxy.lose(message, COMMIT);
    expect(await write(hub), what).toEqual(result);
    await lost;
    expect(await stored(other), what).toEqual(expected);
    // A row for the transaction, and one that kept another from being committed after all.
    expect(await read(), what).toEqual([changes + 1 + fences, former + fences]);
  }
});

describe('a database that goes away while a transaction is committed', () => {
  test('an attempt stays if its commit is confirmed after the hub has returned to the database', async () => {
    await using hubs = await startHubs({ isFast: false });
    const lost = hubs.proxy.lose('response', COMMIT);
    const asked = [1, 2, 3, 4].map(() => hubs.proxy.lose('response', /^SELECT news FROM changes WHERE id/));
    const begun = hubs.hub.grants.beginAttempt(first, attempt);
    await lost;
    hubs.proxy.cut();
    await hubs.returned;
    await Promise.all(asked);
    expect(await begun).toMatchObject({ kind: 'begun' });
    expect(await hubs.other.grants.get(id)).toMatchObject({ attempt: { token: 'hash' } });
    expect(await hubs.other.grants.beginAttempt(first, attempt)).not.toMatchObject({ kind: 'begun' });
  });

  test('a hub hears of its own change that was committed although it could not know that', async () => {
    await using hubs = await startHubs();
    const news: boolean[] = [];
    hubs.hub.watch({ news: async ({ registry }) => void news.push(registry) });
    hubs.goAwayAfter('response');
    const changed = { ...WALLBOX, name: 'renamed' };
    await expect(hubs.hub.registry.save({ updatedAppliances: [changed] })).rejects.toMatchObject({
      code: 'store_unwritable',
    });
    hubs.proxy.pass();
    await hubs.returned;
    expect(news).toEqual([true]);
    expect(await hubs.hub.registry.appliances()).toEqual([changed]);
    expect(await hubs.hub.registry.save({ updatedAppliances: [WALLBOX] })).toBe(true);
  });

  test('an attempt that may have been committed is not begun, and is removed when the database is back', async () => {
    await using hubs = await startHubs();
    await hubs.other.grants.all();
    const news: string[] = [];
    hubs.other.watch({ news: async ({ grants }) => void news.push(...grants) });
    hubs.goAwayAfter('response');
    await expect(hubs.hub.grants.beginAttempt(first, attempt)).rejects.toMatchObject({ code: 'store_unwritable' });
    expect(hubs.hub.writeProblem).toContain("can't be used since");
    expect(await hubs.other.grants.get(id)).toMatchObject({ attempt: { token: 'hash' } });
    await hubs.other.catchUp();
    news.splice(0);
    hubs.proxy.pass();
    await hubs.returned;
    expect(hubs.hub.writeProblem).toBeNull();
    await expect.poll(() => news).toContain(id);
    expect(await hubs.other.grants.get(id)).toMatchObject({ attempt: null });
    expect(await hubs.hub.grants.get(id)).toMatchObject({ attempt: null, grant: { generation: 1 } });
    expect(await hubs.hub.grants.beginAttempt(first, attempt)).toMatchObject({ kind: 'begun' });
  });

  test.each(['response', 'request'] as const)(
    'new tokens of which the %s was lost are written by the next try, once',
    async (message) => {
      await using hubs = await startHubs();
      await hubs.hub.grants.beginAttempt(first, attempt);
      hubs.goAwayAfter(message);
      await expect(hubs.hub.grants.replace(second)).rejects.toMatchObject({ code: 'store_unwritable' });
      expect(await generationOf(hubs.other, id)).toBe(message === 'response' ? 2 : 1);
      hubs.proxy.pass();
      await hubs.returned;
      expect(await hubs.hub.grants.replace(second)).toBe(true);
      expect(await hubs.hub.grants.replace({ ...second, refreshToken: new Secret('late') })).toBe(false);
      const stored = await hubs.other.grants.get(id);
      expect(stored).toMatchObject({ attempt: null, grant: { generation: 2 } });
      expect(stored?.grant.refreshToken?.reveal()).toBe('the-second-refresh-token');
      expect(await hubs.hub.grants.beginAttempt(second, attempt)).toMatchObject({ kind: 'begun' });
    },
  );

  test('new tokens that may have been committed do not replace those of another hub that has used them', async () => {
    await using hubs = await startHubs();
    hubs.goAwayAfter('response');
    await expect(hubs.hub.grants.replace(second)).rejects.toMatchObject({ code: 'store_unwritable' });
    await hubs.other.grants.all();
    expect(await hubs.other.grants.beginAttempt(second, attempt)).toMatchObject({ kind: 'begun' });
    const third = sampleGrant({ generation: 3, refreshToken: new Secret('the-third') });
    expect(await hubs.other.grants.replace(third)).toBe(true);
    hubs.proxy.pass();
    await hubs.returned;
    expect(await hubs.hub.grants.replace(second)).toBe(false);
    expect((await hubs.hub.grants.get(id))?.grant.refreshToken?.reveal()).toBe('the-third');
  });

  test('the end of a pairing that may have been committed is written by the next try, once', async () => {
    await using hubs = await startHubs();
    hubs.goAwayAfter('response');
    await expect(completePairing(hubs.hub, paired, second)).rejects.toMatchObject({ code: 'store_unwritable' });
    hubs.proxy.pass();
    await hubs.returned;
    expect(await hubs.hub.saveLogin(id, () => ({ grant: second, pairing: paired }))).toBe(second);
    expect(await generationOf(hubs.other, id)).toBe(2);
    expect((await hubs.other.pairings.all()).map(({ step }) => step.kind)).toEqual(['ended']);
  });

  test('an attempt whose commit is still running when the hub comes back is removed after its end', async () => {
    await using hubs = await startHubs();
    const { hub, other, sql } = hubs;
    // The commit of an attempt waits for a lock of the test.
    await sql(`CREATE FUNCTION wait() RETURNS trigger LANGUAGE plpgsql SET lock_timeout = 0
        AS 'BEGIN PERFORM pg_advisory_xact_lock_shared(42); RETURN NULL; END';
      CREATE CONSTRAINT TRIGGER slow AFTER UPDATE OF attempt ON grants DEFERRABLE INITIALLY DEFERRED FOR EACH ROW
        WHEN (OLD.attempt IS NULL AND NEW.attempt IS NOT NULL) EXECUTE FUNCTION wait();`);
    const lock = new Client({ connectionString: hubs.url });
    await lock.connect();
    await lock.query('SELECT pg_advisory_lock(42)');
    await expect(hub.grants.beginAttempt(first, attempt)).rejects.toMatchObject({ code: 'store_unwritable' });
    // Long enough to come back without waiting for the commit.
    await Promise.race([hubs.returned, sleep(3000)]);
    await lock.end();
    await hubs.returned;
    await expect
      .poll(() => sql("SELECT count(*) FROM pg_stat_activity WHERE state = 'active' AND query = 'COMMIT';"))
      .toBe('0');
    expect(await other.grants.get(id)).toMatchObject({ attempt: null, grant: { generation: 1 } });
    await sql('DROP TRIGGER slow ON grants;');
    await hub.grants.get(id);
    expect(await hub.grants.beginAttempt(first, attempt)).toMatchObject({ kind: 'begun' });
  });

  test('a write fails at once while the database is away, and so does a read', async () => {
    await using hubs = await startHubs();
    hubs.proxy.refuse();
    await expect.poll(() => hubs.hub.writeProblem).not.toBeNull();
    const attempts = Array.from({ length: 50 }, () => hubs.hub.grants.replace(second));
    for (const result of await Promise.allSettled(attempts)) {
      expect(result).toMatchObject({ status: 'rejected', reason: { code: 'store_unwritable' } });
    }
    await expect(hubs.hub.grants.all()).rejects.toMatchObject({ code: 'store_unreadable' });
    hubs.proxy.pass();
    await hubs.returned;
    expect(await hubs.hub.grants.replace(second)).toBe(true);
  });
});

test.each([
  ['is stopped', false, 'fast', null],
  ['has crashed', false, 'immediate', { kind: 'copy' }],
  ['has crashed', true, 'immediate', null],
] as const)(
  'a server that %s, and whose commits wait for the disk (%s), may have lost some only in one case',
  async (_what, fsync, mode, doubt) => {
    await using server = await startPostgres({ tls: false, fsync });
    const address = addressOf((await server.createDatabase()).url);
    {
      await using store = await openSiteStore(address, HUB_A);
      await addAppliance(store, WALLBOX);
      await store.grants.replace(sampleGrant({ connection: WALLBOX.id }));
    }
    await server.restart(mode);
    await using store = await openSiteStore(address, HUB_A);
    const found = (await store.grants.get(WALLBOX.id))?.grant.doubt;
    expect(found).toEqual(doubt && expect.objectContaining(doubt));
  },
);
