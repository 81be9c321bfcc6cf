import { Client } from 'pg';
import { expect, test } from 'vitest';
import type { BackupContents } from '../../src/core/backup-contents.ts';
import { Failure } from '../../src/core/failure.ts';
import type { Grant } from '../../src/core/grants/grant.ts';
import { Secret } from '../../src/core/secret.ts';
import { restoreState } from '../../src/store/backup/backup.ts';
import type { PostgresStore } from '../../src/store/postgres/postgres-store.ts';
import { instantAt, sampleGrant } from '../core/samples.ts';
import {
  addAppliance,
  HEATER,
  ownConnection,
  removeAppliance,
  sampleSession,
  updateAppliance,
  WALLBOX,
} from '../store/test-store.ts';
import { COMMIT, PostgresProxy } from '../support/postgres/proxy.ts';
import { addressOf, openSiteStore, useSiteServer } from './site-harness.ts';

const siteServer = useSiteServer();

const MADE = Date.UTC(2031, 4, 5, 6);
const FORMER_ID = 'latchkey-0000cafe';
const OWN_ID = 'latchkey-00000001';
const OTHER_ID = 'latchkey-00000002';
const grantOf = (connection: string, generation: number, token: string): Grant =>
  sampleGrant({ connection, generation, refreshToken: new Secret(token) });
const BACKUP: BackupContents = {
  made: MADE,
  settings: new Map([
    ['hub_id', FORMER_ID],
    ['setup_code', 'the code'],
  ]),
  connections: [WALLBOX, HEATER].map(ownConnection),
  appliances: [WALLBOX, HEATER],
  grants: [grantOf(WALLBOX.id, 3, 'of the backup'), grantOf(HEATER.id, 2, 'of the backup')],
  sessions: [sampleSession(WALLBOX, 'wallbox')],
};

/** A database of a site with a proxy in front of it. */
async function openSite() {
  const server = await siteServer();
  const database = await server.createDatabase();
  const proxy = await PostgresProxy.start(server);
  return {
    server,
    database,
    proxy,
    direct: addressOf(database.url),
    proxied: addressOf(proxy.urlOf(database.url)),
    [Symbol.asyncDispose]: () => proxy[Symbol.asyncDispose](),
  };
}

/** How often a hub was to start again because of a restore. */
function countRestores(store: PostgresStore) {
  const counted = { count: 0 };
  store.watch({
    restored: () => {
      counted.count += 1;
    },
  });
  return counted;
}

/** What a restore changes, as a hub reads it. */
async function contentOf(store: PostgresStore) {
  return {
    setupCode: await store.settings.get('setup_code'),
    connections: (await store.registry.connections()).map(({ name }) => name),
    appliances: (await store.registry.appliances()).map(({ name }) => name),
    grants: (await store.grants.all()).map(({ grant }) => grant.refreshToken?.reveal()).sort(),
    sessions: (await store.sessions.all()).map(({ hash }) => hash),
  };
}

const RESTORED = {
  setupCode: 'the code',
  connections: ['heater', 'wallbox'],
  appliances: ['heater', 'wallbox'],
  grants: ['of the backup', 'of the backup'],
  sessions: ['hash-wallbox'],
};

test('after a restore every other hub of the site starts again, and one that starts later does not', async () => {
  await using site = await openSite();
  await using first = await openSiteStore(site.direct, OWN_ID);
  await using second = await openSiteStore(site.direct, OTHER_ID);
  const restores = [first, second].map(countRestores);
  // Changes are looked for from the beginning of the oldest open transaction on, here one in another database.
  const held = new Client((await site.server.createDatabase()).url);
  await using _ended = { [Symbol.asyncDispose]: () => held.end() };
  await held.connect();
  await held.query('BEGIN');
  await held.query('SELECT pg_current_xact_id()');
  await restoreState(first, BACKUP);
  await expect.poll(() => restores.map(({ count }) => count)).toEqual([0, 1]);
  await using third = await openSiteStore(site.direct, 'latchkey-00000003');
  const late = countRestores(third);
  await third.catchUp();
  await third.catchUp();
  await first.catchUp();
  expect([late.count, restores[0]?.count]).toEqual([0, 0]);
  expect(await contentOf(third)).toEqual(RESTORED);
});

test('two restores at once, on one hub and on two, lead to one result', async () => {
  await using site = await openSite();
  await using first = await openSiteStore(site.direct, OWN_ID);
  await using second = await openSiteStore(site.direct, OTHER_ID);
  const outcomes = await Promise.all(
    [first, first, second, second].map((store) =>
      restoreState(store, BACKUP).then(
        ({ restored }) => restored.length,
        (error: unknown) => (error instanceof Failure ? error.code : error),
      ),
    ),
  );
  expect(outcomes.filter((outcome) => outcome === 2)).toHaveLength(1);
  for (const outcome of outcomes) expect([2, 0, 'not_allowed']).toContain(outcome);
  expect(await contentOf(first)).toEqual(RESTORED);
  expect((await first.grants.all()).map(({ grant }) => grant.generation)).toEqual([3, 2]);
  const ids = await Promise.all([first, second].map((store) => store.settings.get('hub_id')));
  expect(ids.filter((id) => id === FORMER_ID)).toHaveLength(1);
  expect(ids.filter((id) => id === OWN_ID || id === OTHER_ID)).toHaveLength(1);
});

test('a restore is rejected, and changes nothing, while another one takes long', async () => {
  await using site = await openSite();
  await using first = await openSiteStore(site.proxied, OWN_ID);
  await using second = await openSiteStore(site.direct, OTHER_ID);
  const held = site.proxy.lose('request', /INSERT INTO grants/, { by: 'hold' });
  const restored = restoreState(first, BACKUP);
  await held;
  await expect(restoreState(second, BACKUP)).rejects.toMatchObject({
    code: 'not_allowed',
    message: expect.stringMatching(/another backup is being restored.*wait until that has ended/),
  });
  site.proxy.pass();
  expect(await restored).toMatchObject({ restored: ['wallbox', 'heater'] });
  expect(await contentOf(second)).toEqual(RESTORED);
});

/** The first statements of a restore and the last one before its commit. */
const STATEMENTS: readonly RegExp[] = [/^LOCK TABLE/, /INSERT INTO settings/, /INSERT INTO changes/];

test('a restore whose connection breaks before its commit fails, and has changed nothing', async () => {
  await using site = await openSite();
  await using other = await openSiteStore(site.direct, OWN_ID);
  await using store = await openSiteStore(site.proxied, OTHER_ID);
  await addAppliance(other, WALLBOX);
  expect(await other.grants.replace(grantOf(WALLBOX.id, 1, 'of the site'))).toBe(true);
  const before = await contentOf(other);
  const restores = [store, other].map(countRestores);
  for (const statement of STATEMENTS) {
    const lost = site.proxy.lose('request', statement);
    await expect(restoreState(store, BACKUP), String(statement)).rejects.toMatchObject({ code: 'store_unwritable' });
    await lost;
    expect(await contentOf(other), String(statement)).toEqual(before);
    await expect.poll(() => store.writeProblem).toBeNull();
  }
  // The locks of a transaction end with it.
  expect(await restoreState(other, BACKUP)).toMatchObject({ restored: ['wallbox', 'heater'] });
  expect(await contentOf(other)).toEqual(RESTORED);
  await store.catchUp();
  expect(restores.map(({ count }) => count)).toEqual([1, 0]);
});

test.each(['request', 'response'] as const)(
  'a restore is done once, and the hub knows it, if the %s of its commit is lost',
  async (message) => {
    await using site = await openSite();
    await using other = await openSiteStore(site.direct, OWN_ID);
    await using store = await openSiteStore(site.proxied, OTHER_ID);
    const restores = [store, other].map(countRestores);
    const lost = site.proxy.lose(message, COMMIT);
    expect(await restoreState(store, BACKUP)).toEqual({ restored: ['wallbox', 'heater'], kept: [] });
    await lost;
    expect(await contentOf(other)).toEqual(RESTORED);
    expect((await other.grants.all()).map(({ grant }) => grant.generation)).toEqual([3, 2]);
    await other.catchUp();
    await store.catchUp();
    expect(restores.map(({ count }) => count)).toEqual([0, 1]);
  },
);

test('no hub puts back what it knew before a restore, and none writes over it', async () => {
  await using site = await openSite();
  await using first = await openSiteStore(site.direct, OWN_ID);
  await using second = await openSiteStore(site.direct, OTHER_ID);
  await addAppliance(first, WALLBOX);
  const old = grantOf(WALLBOX.id, 1, 'of the site');
  expect(await first.grants.replace(old)).toBe(true);
  await second.grants.all();
  await second.registry.appliances();
  const attempt = { token: 'hash', at: instantAt(1) };
  expect(await second.grants.beginAttempt(old, attempt)).toMatchObject({ kind: 'begun' });
  expect(await second.grants.endAttempt(old)).toBe(true);
  expect(await second.grants.beginAttempt(old, attempt)).toMatchObject({ kind: 'begun' });
  // The second hub has not heard of it when it gets an answer for its refresh.
  await removeAppliance(first, WALLBOX.id);
  await restoreState(first, BACKUP);
  expect(await second.grants.replace(grantOf(WALLBOX.id, 2, 'of a late answer'))).toBe(false);
  const found = (await second.grants.find(new Set([WALLBOX.id]))).get(WALLBOX.id);
  expect(found).toMatchObject({ hasLostWrites: false, stored: { grant: { generation: 3 } } });
  await second.grants.reconcile([old]);
  expect(await updateAppliance(second, { ...WALLBOX, name: 'renamed' })).toBe(false);
  expect(await contentOf(first)).toEqual(RESTORED);
});

test('the grants of a copy of the database are in doubt, and those of a server that was only restarted are not', async () => {
  const server = await siteServer();
  const database = await server.createDatabase();
  {
    await using store = await openSiteStore(addressOf(database.url), OWN_ID);
    await addAppliance(store, WALLBOX);
    await store.grants.replace(grantOf(WALLBOX.id, 1, 'of the site'));
  }
  await server.restart();
  {
    await using store = await openSiteStore(addressOf(database.url), OWN_ID);
    expect(await store.grants.get(WALLBOX.id)).toMatchObject({ grant: { doubt: null } });
  }
  const copy = { ...database, name: `${database.name}_copy` };
  await server.sql('postgres', `CREATE DATABASE ${copy.name} TEMPLATE ${database.name} OWNER ${database.user};`);
  await using store = await openSiteStore(addressOf(server.urlOf(copy)), OWN_ID);
  expect(await store.grants.get(WALLBOX.id)).toMatchObject({ grant: { doubt: { kind: 'copy' } } });
});
