import { Client } from 'pg';
import { expect, test } from 'vitest';
import type { SiteNews } from '../../../src/core/site.ts';
import type { PostgresStore } from '../../../src/store/postgres/postgres-store.ts';
import { systemClock } from '../../../src/system/clock.ts';
import { sampleGrant } from '../../core/samples.ts';
import {
  HUB_A,
  HUB_B,
  NO_INTERVALS,
  openSiteStore,
  type SiteHubOptions,
  siteAddress,
  useSiteServer,
} from '../../site/site-harness.ts';
import { addAppliance, WALLBOX } from '../../store/test-store.ts';
import type { TestDatabase } from '../../support/postgres/server.ts';

const siteServer = useSiteServer();

/** The news that a hub gets, one entry for each id, in their order. */
function collectNews(store: PostgresStore) {
  const entries: string[] = [];
  store.watch({
    async news(news) {
      if (news.all) entries.push('all');
      for (const flag of ['registry', 'invites'] as const) if (news[flag]) entries.push(flag);
      for (const [kind, ids] of Object.entries(news) as [keyof SiteNews, unknown][]) {
        if (ids instanceof Set) entries.push(...[...ids].map((id) => `${kind}/${id}`));
      }
    },
  });
  return entries;
}

/** A change of another hub whose notification was lost. */
const CHANGE = "INSERT INTO latchkey.changes (id, hub, news) VALUES (gen_random_uuid(), 'another', $1)";

async function connect(database: TestDatabase): Promise<Client> {
  const client = new Client({ connectionString: database.url });
  await client.connect();
  return client;
}

/** A hub, the news that it gets, and a client of its database that changes what it likes. */
async function startWatched(options: SiteHubOptions = { timers: NO_INTERVALS }) {
  await using parts = new AsyncDisposableStack();
  const database = await (await siteServer()).createDatabase();
  const store = parts.use(await openSiteStore(siteAddress(database), HUB_A, options));
  const client = await connect(database);
  parts.defer(() => client.end());
  const restores = { count: 0 };
  store.watch({
    restored: () => {
      restores.count += 1;
    },
  });
  const owned = parts.move();
  return { store, client, restores, news: collectNews(store), [Symbol.asyncDispose]: () => owned.disposeAsync() };
}

test('a hub gets the news of another hub, and none of its own', async () => {
  const database = await (await siteServer()).createDatabase();
  await using first = await openSiteStore(siteAddress(database), HUB_A);
  await using second = await openSiteStore(siteAddress(database), HUB_B, { timers: NO_INTERVALS });
  const [own, others] = [collectNews(first), collectNews(second)];
  await addAppliance(first, WALLBOX);
  await first.settings.save({ setup_code: 'a code' });
  await first.settings.save({ hub_id: 'one', leaf: 'a leaf' });
  await first.invites.remove('of nobody');
  await first.invites.save({
    hash: 'h',
    name: null,
    scope: null,
    portal: 'home',
    begun: systemClock().now(),
    lifetime: 1,
  });
  await first.grants.forget(WALLBOX.id, 7);
  const expected = ['registry', 'settings/setup_code', 'invites'].sort();
  // Several changes may come together.
  await expect.poll(() => others.toSorted()).toEqual(expected);
  await first.catchUp();
  await second.catchUp();
  expect(own).toEqual([]);
  expect(others.toSorted()).toEqual(expected);
});

test('news whose notification was lost are found by looking, once', async () => {
  await using watched = await startWatched({});
  const { store, client, news } = watched;
  await client.query(CHANGE, [['grants/1']]);
  await expect.poll(() => news).toEqual(['grants/1']);
  await client.query(CHANGE, [['grants/2']]);
  await store.catchUp();
  await store.catchUp();
  expect(news).toEqual(['grants/1', 'grants/2']);
});

test('news of transactions that end late are neither lost nor found twice, and nor are those after them', async () => {
  const database = await (await siteServer()).createDatabase();
  await using store = await openSiteStore(siteAddress(database), HUB_A);
  await using other = await openSiteStore(siteAddress(database), HUB_B);
  await addAppliance(other, WALLBOX);
  const news = collectNews(store);
  await store.catchUp();
  news.splice(0);
  const [dump, slow, quick] = [await connect(database), await connect(database), await connect(database)];
  await dump.query('BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; SELECT count(*) FROM latchkey.changes');
  await slow.query('BEGIN');
  await slow.query(CHANGE, [['grants/slow']]);
  for (let look = 0; look < 4; look += 1) {
    await quick.query(CHANGE, [[`grants/quick-${look}`]]);
    await other.grants.replace(sampleGrant({ generation: look + 1 }));
    await store.catchUp();
  }
  expect(news.filter((entry) => entry.includes('quick'))).toEqual([0, 1, 2, 3].map((look) => `grants/quick-${look}`));
  // Those with a notification may come twice if that is late; then a hub only reads once more.
  expect(news).toContain(`grants/${WALLBOX.id}`);
  expect(news).not.toContain('grants/slow');
  await slow.query('COMMIT');
  for (let look = 0; look < 4; look += 1) await store.catchUp();
  await dump.query('COMMIT');
  await store.catchUp();
  expect(news.filter((entry) => entry.startsWith('grants/slow'))).toEqual(['grants/slow']);
  expect(news.filter((entry) => entry.includes('quick'))).toHaveLength(4);
  for (const client of [dump, slow, quick]) await client.end();
});

test('a notification of a stranger, whatever it contains, only makes a hub look for news', async () => {
  await using watched = await startWatched();
  const { client, news, restores } = watched;
  await client.query(CHANGE, [['grants/1']]);
  await client.query('SELECT pg_notify($1, $2)', ['latchkey', '{"news":["restored"]}']);
  await expect.poll(() => news).toEqual(['grants/1']);
  expect(restores.count).toBe(0);
});

test('a hub that was suspended for longer than changes are kept reads everything again', async () => {
  let suspended = 0;
  const running = systemClock('boot-a');
  const clock = { now: () => ({ ...running.now(), uptime: running.now().uptime + suspended }) };
  await using watched = await startWatched({ clock });
  const { store, news } = watched;
  await store.catchUp();
  expect(news).toEqual([]);
  suspended = 3 * 3_600_000;
  await store.catchUp();
  await store.catchUp();
  expect(news).toEqual(['all']);
});
