// Logins whose end meets what another hub does, or an outage of the database, on a real PostgreSQL server.
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { createBrokerAdministration } from '../../../src/broker/administration.ts';
import { Failure } from '../../../src/core/failure.ts';
import type { Grant } from '../../../src/core/grants/grant.ts';
import { Secret } from '../../../src/core/secret.ts';
import type { FoundGrant } from '../../../src/core/store.ts';
import { followRedirect, logIn, type PortalHub } from '../../site/portal-site.ts';
import { expectSoon, withoutNotifications } from '../../site/site-brokers.ts';
import { siteServer, useSiteServer } from '../../site/site-harness.ts';
import { COMMIT } from '../../support/postgres/proxy.ts';
import { withMethods } from '../../support/store-calls.ts';
import { logInWhileCutOff, refreshTokenAt, startWaiting } from './waiting-login.ts';

useSiteServer();

/** The query with which a hub measures the database's clock. */
const CLOCK = /SELECT \(extract\(epoch FROM clock_timestamp\(\)\) \* 1000\)::float8 AS now/;

function administrationOf({ broker }: PortalHub) {
  return createBrokerAdministration(broker, {
    endpoint: (path) => path,
    stableEndpoint: (path) => path,
    shortLink: () => null,
    fingerprint: () => '',
  });
}

test.each(['new', 'former'])(
  'the tokens of a login that come while the database is away are kept: a %s grant',
  async (grant) => {
    await using waiting = await startWaiting();
    const { site, first, connection } = waiting;
    let { id } = waiting;
    if (grant === 'former') {
      // The row keeps the generation of the grant that was deleted, which no hub has in memory.
      await followRedirect(first, await waiting.login());
      await first.broker.grants.delete(connection.id);
      id = await waiting.begin();
    }
    const location = await logIn(site, first.pairing(id));
    const answer = waiting.site.holdAnswer();
    const before = waiting.tokenRequests();
    const shown = followRedirect(first, location);
    await expectSoon(() => waiting.tokenRequests(), before + 1);
    const server = await siteServer();
    await server.stop('immediate');
    answer();
    await shown;
    expect(first.stepOf(id)).toBe('paired');
    await server.start();
    await expectSoon(async () => (await first.store.grants.get(connection.id).catch(() => null)) !== null, true);
    await expectSoon(() => [first, waiting.second].map((hub) => hub.stepOf(id)), ['paired', 'paired']);
  },
);

test.each([1, 2])(
  'a login that is only in memory replaces a grant that another hub refreshes meanwhile, %i times',
  async (times) => {
    await using waiting = await startWaiting();
    const { first, second, connection, proxy } = waiting;
    await waiting.logInOnce();
    const token = await logInWhileCutOff(waiting, await waiting.begin());
    for (let count = 0; count < times; count += 1) await second.broker.grants.refresh(connection.id);
    proxy.pass();
    await expectSoon(() => refreshTokenAt(second, connection.id), token);
    expect(refreshTokenAt(first, connection.id)).toBe(token);
  },
);

test.each(['a refresh', 'a later login'])('a login that is only in memory meets, as it is saved, %s', async (kind) => {
  let beforeSave: (() => Promise<void>) | null = null;
  await using waiting = await startWaiting((store) =>
    withMethods(store, {
      async saveLogin(id, decide) {
        const before = beforeSave;
        beforeSave = null;
        await before?.();
        return store.saveLogin(id, decide);
      },
    }),
  );
  const { site, first, second, connection, proxy } = waiting;
  await waiting.logInOnce();
  const token = await logInWhileCutOff(waiting, await waiting.begin());
  await second.broker.grants.refresh(connection.id);
  const later = kind === 'a later login' ? await waiting.begin([second]) : null;
  const location = later === null ? null : await logIn(site, second.pairing(later));
  let latest = token;
  beforeSave = async () => {
    if (location === null) return second.broker.grants.refresh(connection.id);
    await followRedirect(second, location);
    latest = refreshTokenAt(second, connection.id);
  };
  proxy.pass();
  await expectSoon(() => first.broker.grants.get(connection.id)?.isUnsaved, false);
  expect(beforeSave).toBeNull();
  await expectSoon(() => [first, second].map((hub) => refreshTokenAt(hub, connection.id)), [latest, latest]);
});

test('a login that is only in memory does not replace a later one of another hub', async () => {
  await using waiting = await startWaiting();
  const { site, first, second, connection, proxy, id } = waiting;
  await logInWhileCutOff(waiting, id);
  const later = await waiting.begin([second]);
  await followRedirect(second, await logIn(site, second.pairing(later)));
  const token = refreshTokenAt(second, connection.id);
  proxy.pass();
  await expectSoon(() => refreshTokenAt(first, connection.id), token);
  expect((await second.store.grants.get(connection.id))?.grant.generation).toBe(1);
  // Nobody has to log in again for the pairing of the earlier login.
  await expectSoon(() => [first, second].map((hub) => hub.stepOf(id)), ['paired', 'paired']);
});

test('a login whose token another hub has used is not written again, although a clock was measured wrongly', async () => {
  let loseCommit: (() => void) | null = null;
  await using waiting = await startWaiting((store) =>
    withMethods(store, {
      saveLogin(id, decide) {
        loseCommit?.();
        loseCommit = null;
        return store.saveLogin(id, decide);
      },
    }),
  );
  const { first, second, connection, proxy } = waiting;
  const location = await waiting.login();
  loseCommit = () => void proxy.lose('response', COMMIT).then(() => proxy.refuse());
  await followRedirect(first, location);
  await expectSoon(() => first.broker.grants.get(connection.id)?.isUnsaved, true);
  const token = refreshTokenAt(first, connection.id);
  await expectSoon(() => refreshTokenAt(second, connection.id), token);
  await second.broker.grants.refresh(connection.id);
  const rotated = refreshTokenAt(second, connection.id);
  const held = proxy.lose('request', CLOCK, { by: 'hold' });
  proxy.pass();
  await held;
  await sleep(3000);
  proxy.pass();
  await expectSoon(() => refreshTokenAt(first, connection.id), rotated);
  expect(refreshTokenAt(second, connection.id)).toBe(rotated);
  await second.broker.grants.refresh(connection.id);
  expect(waiting.sendsOf(token)).toBe(1);
});

test('a hub takes over a later login, although the database has lost refreshes of the former one', async () => {
  let found: FoundGrant | null = null;
  const lost: Grant[] = [];
  await using waiting = await startWaiting((store) =>
    withMethods(store, {
      grants: withMethods(store.grants, {
        find: async (ids) =>
          found === null ? store.grants.find(ids) : new Map([[found.stored.grant.connection, found]]),
        reconcile: async (grants) => void lost.push(...grants),
      }),
    }),
  );
  const { first, connection } = waiting;
  await waiting.logInOnce();
  const grant = (await first.store.grants.get(connection.id))?.grant;
  if (grant?.login === undefined) throw new Error('the login of the grant is not known');
  for (let count = 0; count < 2; count += 1) await first.broker.grants.refresh(connection.id);
  const held = first.broker.grants.get(connection.id)?.grant;
  expect(held?.generation).toBe(3);
  const { at } = grant.login;
  const login = { ...grant.login, pairing: 'a-later-one', at: { ...at, uptime: at.uptime + 60_000 } };
  const later = { ...grant, generation: 2, refreshToken: new Secret('of-the-later-login'), login };
  found = { stored: { grant: later, attempt: null }, hasLostWrites: true };
  await first.broker.grants.applyNews(new Set(), true);
  expect(refreshTokenAt(first, connection.id)).toBe('of-the-later-login');
  // The store learns that what this hub held has ended.
  expect(lost).toEqual([held]);
});

test('an earlier login is not refreshed if the later one in the store can not be read yet', async () => {
  let reading: 'normal' | 'fails next' | 'fails' = 'normal';
  await using waiting = await startWaiting((store) =>
    withMethods(store, {
      async saveLogin(id, decide) {
        const saved = await store.saveLogin(id, decide);
        if (reading === 'fails next') reading = 'fails';
        return saved;
      },
      grants: withMethods(store.grants, {
        async find(connections) {
          if (reading === 'fails') throw new Failure('store_unwritable', 'Query read timeout');
          return store.grants.find(connections);
        },
      }),
    }),
  );
  const { site, first, second, connection, proxy } = waiting;
  const token = await logInWhileCutOff(waiting, waiting.id);
  const later = await waiting.begin([second]);
  await followRedirect(second, await logIn(site, second.pairing(later)));
  reading = 'fails next';
  proxy.pass();
  await expectSoon(() => reading, 'fails');
  await first.broker.grants.refresh(connection.id);
  reading = 'normal';
  await first.broker.grants.refresh(connection.id);
  await expectSoon(() => refreshTokenAt(first, connection.id), refreshTokenAt(second, connection.id));
  expect(waiting.sendsOf(token)).toBe(0);
});

test('a login that is only in memory is stored once, although it is saved twice at once', async () => {
  await using waiting = await startWaiting();
  const { first, second, connection, proxy } = waiting;
  const token = await logInWhileCutOff(waiting, waiting.id);
  const managed = first.broker.grants.get(connection.id);
  // The hub itself saves it at the same moment.
  const saved = new Promise<unknown>((resolve) => first.store.watch({ returned: () => resolve(managed?.save()) }));
  proxy.pass();
  await saved;
  await expectSoon(() => refreshTokenAt(second, connection.id), token);
  expect(second.broker.grants.get(connection.id)?.grant.generation).toBe(1);
  expect(first.broker.grants.get(connection.id)).toBe(managed);
});

test('a hub unpairs a connection although another one is just completing a login for it', async () => {
  await using waiting = await startWaiting();
  const { site, first } = waiting;
  const late = await site.startHub(3, withoutNotifications);
  const location = await waiting.login();
  const answer = waiting.site.holdAnswer();
  const shown = followRedirect(first, location);
  await expectSoon(() => waiting.tokenRequests(), 1);
  const refused = { code: 'not_allowed', message: expect.stringContaining('another hub of the site') };
  await expect(administrationOf(late).unpair('wallbox')).rejects.toMatchObject(refused);
  answer();
  await shown;
  await administrationOf(late).unpair('wallbox');
  expect(await first.store.grants.get(waiting.connection.id)).toBeNull();
});
