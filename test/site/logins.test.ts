// Logins whose end meets what another hub does, or an outage of the database, on a real PostgreSQL server.
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { createBrokerAdministration } from '../../src/broker/administration.ts';
import { Secret } from '../../src/core/secret.ts';
import { PostgresProxy } from '../support/postgres/proxy.ts';
import { AUTOMATIC_REDIRECT, followRedirect, logIn, type PortalHub, PortalSite } from './portal-site.ts';
import { expectSoon } from './site-brokers.ts';
import { siteServer, useSiteServer } from './site-harness.ts';

useSiteServer();

/** Two hubs of a site, and an appliance whose pairing waits for a login. */
async function startWaiting() {
  await using starting = new AsyncDisposableStack();
  const site = starting.use(await PortalSite.start(AUTOMATIC_REDIRECT));
  const proxy = starting.use(await PostgresProxy.start(await siteServer()));
  const first = await site.startHub(1, undefined, proxy);
  const connection = await first.addAppliance('wallbox');
  const second = await site.startHub(2);
  const { pairing } = await first.broker.pairings.begin(connection);
  await expectSoon(() => [first, second].map((hub) => hub.stepOf(pairing.id)), ['waiting', 'waiting']);
  const resources = starting.move();

  return {
    ...{ site, first, second, connection, proxy, id: pairing.id },
    login: () => logIn(site, first.pairing(pairing.id)),
    tokenRequests: () => site.portal.requests('token').length,
    [Symbol.asyncDispose]: () => resources.disposeAsync(),
  };
}

/** The first hub has got the tokens of a login while it was cut off from the database. @returns its refresh token */
async function logInWhileCutOff(waiting: Awaited<ReturnType<typeof startWaiting>>, id: string): Promise<string> {
  const { site, first, connection, proxy } = waiting;
  const location = await logIn(site, first.pairing(id));
  const answer = waiting.site.holdAnswer();
  const before = waiting.tokenRequests();
  const shown = followRedirect(first, location);
  await expectSoon(() => waiting.tokenRequests(), before + 1);
  proxy.refuse();
  answer();
  await shown;
  expect(first.broker.grants.get(connection.id)?.isUnsaved).toBe(true);
  return refreshTokenAt(first, connection.id);
}

function refreshTokenAt({ broker }: PortalHub, connection: string): string {
  return broker.grants.get(connection)?.grant.refreshToken?.reveal() ?? '';
}

function administrationOf({ broker }: PortalHub) {
  return createBrokerAdministration(broker, { endpoint: (path) => path, shortLink: () => null, fingerprint: () => '' });
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
      ({ id } = (await first.broker.pairings.begin(connection)).pairing);
      await expectSoon(() => first.stepOf(id), 'waiting');
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
    await expectSoon(async () => (await first.store.grant(connection.id).catch(() => null)) !== null, true);
    await expectSoon(() => [first, waiting.second].map((hub) => hub.stepOf(id)), ['paired', 'paired']);
  },
);

test.each([1, 2])(
  'a login that is only in memory replaces a grant that another hub refreshes meanwhile, %i times',
  async (times) => {
    await using waiting = await startWaiting();
    const { first, second, connection, proxy } = waiting;
    await followRedirect(first, await waiting.login());
    await expectSoon(() => second.broker.grants.get(connection.id) !== undefined, true);
    // Logins of the same second count as one.
    await sleep(1500);
    const { pairing } = await first.broker.pairings.begin(connection);
    await expectSoon(() => first.stepOf(pairing.id), 'waiting');
    const token = await logInWhileCutOff(waiting, pairing.id);
    for (let count = 0; count < times; count += 1) await second.broker.grants.refresh(connection.id);
    proxy.pass();
    await expectSoon(() => refreshTokenAt(second, connection.id), token);
    expect(refreshTokenAt(first, connection.id)).toBe(token);
  },
);

test('a login that is only in memory does not replace a later one of another hub', async () => {
  await using waiting = await startWaiting();
  const { site, first, second, connection, proxy } = waiting;
  await logInWhileCutOff(waiting, waiting.id);
  await sleep(1500);
  const { pairing } = await second.broker.pairings.begin(second.connectionById(connection.id));
  await expectSoon(() => second.stepOf(pairing.id), 'waiting');
  await followRedirect(second, await logIn(site, second.pairing(pairing.id)));
  const token = refreshTokenAt(second, connection.id);
  proxy.pass();
  await expectSoon(() => refreshTokenAt(first, connection.id), token);
  expect((await second.store.grant(connection.id))?.grant.generation).toBe(1);
});

test('a login that is only in memory is stored once, although it is saved twice at once', async () => {
  await using waiting = await startWaiting();
  const { first, second, connection, proxy } = waiting;
  const token = await logInWhileCutOff(waiting, waiting.id);
  const managed = first.broker.grants.get(connection.id);
  // The hub itself saves it at the same moment.
  const saved = new Promise<unknown>((resolve) => first.store.onReturn(() => resolve(managed?.save())));
  proxy.pass();
  await saved;
  await expectSoon(() => refreshTokenAt(second, connection.id), token);
  expect(second.broker.grants.get(connection.id)?.grant.generation).toBe(1);
  expect(first.broker.grants.get(connection.id)).toBe(managed);
});

test('a hub does not say that a connection is unpaired while another one completes a login for it', async () => {
  await using waiting = await startWaiting();
  const { first, second, id } = waiting;
  const location = await waiting.login();
  const answer = waiting.site.holdAnswer();
  const shown = followRedirect(first, location);
  await expectSoon(() => second.stepOf(id), 'exchanging');
  const refused = { code: 'not_allowed', message: expect.stringContaining('another hub of the site') };
  await expect(administrationOf(second).unpair('wallbox')).rejects.toMatchObject(refused);
  answer();
  await shown;
  await expectSoon(() => second.stepOf(id), 'paired');
  await administrationOf(second).unpair('wallbox');
  expect(await first.store.grant(waiting.connection.id)).toBeNull();
});

test.each(['a new', 'a former'])(
  'news and waiting appliances do not send an imported token again: %s grant',
  async (kind) => {
    await using waiting = await startWaiting();
    const { site, first, connection } = waiting;
    await followRedirect(first, await waiting.login());
    const token = first.broker.grants.get(connection.id)?.grant.refreshToken;
    if (token === null || token === undefined) throw new Error('there is no refresh token');
    const other = await first.addAppliance('heater');
    if (kind === 'a former') {
      const { pairing } = await first.broker.pairings.begin(other);
      await expectSoon(() => first.stepOf(pairing.id), 'waiting');
      await followRedirect(first, await logIn(site, first.pairing(pairing.id)));
    }
    const answer = waiting.site.holdAnswer();
    const before = waiting.tokenRequests();
    const imported = first.broker.grantImports.run(other, { refreshToken: token, replace: true });
    await expectSoon(() => waiting.tokenRequests(), before + 1);
    await first.broker.grants.applyNews(new Set(), true);
    await first.broker.grants.refresh(other.id);
    answer();
    await imported;
    expect(waiting.tokenRequests()).toBe(before + 1);
    await first.broker.grants.refresh(other.id);
    expect(first.broker.grants.get(other.id)?.health.kind).toBe('good');
  },
);

test('an import does not replace a grant that another hub is refreshing', async () => {
  await using waiting = await startWaiting();
  const { first, second, connection } = waiting;
  await followRedirect(first, await waiting.login());
  await expectSoon(() => second.broker.grants.get(connection.id) !== undefined, true);
  const answer = waiting.site.holdAnswer();
  const before = waiting.tokenRequests();
  const refreshed = second.broker.grants.refresh(connection.id);
  await expectSoon(() => waiting.tokenRequests(), before + 1);
  const imported = { refreshToken: new Secret('not-a-refresh-token'), replace: true };
  const run = () => first.broker.grantImports.run(connection, imported);
  await expect(run()).rejects.toMatchObject({ code: 'not_allowed' });
  answer();
  await refreshed;
  expect((await first.store.grant(connection.id))?.grant.generation).toBe(2);
  await expectSoon(() => first.broker.grants.get(connection.id)?.grant.generation, 2);
  // Afterwards it is tried, and what is there stays because the portal refuses the token.
  await expect(run()).rejects.toMatchObject({
    code: 'import_failed',
    message: expect.stringContaining('nothing was kept'),
  });
  await first.broker.grants.refresh(connection.id);
  expect(first.broker.grants.get(connection.id)?.health.kind).toBe('good');
});
