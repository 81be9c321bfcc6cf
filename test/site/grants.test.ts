import { setTimeout as sleep } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { Failure } from '../../src/core/failure.ts';
import { followRedirect, logIn, type PortalHub, PortalSite } from './portal-site.ts';
import { expectSoon, startSiteBroker, withMethods } from './site-brokers.ts';
import { addressOf, siteServer, useSiteServer } from './site-harness.ts';

useSiteServer();

/**
 * Two hubs of a site whose portal revokes a grant if a refresh token is used again, and a grant that both know.
 * @param wrap changes the store that the first one uses
 */
async function startPaired(wrap?: Parameters<PortalSite['startHub']>[1]) {
  await using starting = new AsyncDisposableStack();
  const site = starting.use(await PortalSite.start({ emulator: { onReuse: 'revoke-family' } }));
  const first = await site.startHub(1, wrap);
  const { id } = await first.addAppliance('wallbox');
  const second = await site.startHub(2);
  const { pairing } = await first.broker.pairings.begin(first.connectionById(id));
  await expectSoon(() => first.stepOf(pairing.id), 'waiting');
  await followRedirect(first, await logIn(site, first.pairing(pairing.id)));
  await expectSoon(() => generations(first, second), [1, 1]);
  const resources = starting.move();

  function generations(...hubs: readonly PortalHub[]) {
    return hubs.map((hub) => hub.broker.grants.get(id)?.grant.generation);
  }

  function refreshes(): number {
    return site.portal.requests('token').filter(({ form }) => form.get('grant_type') === 'refresh_token').length;
  }

  return {
    ...{ site, first, second, id, generations },
    refreshes,
    /** The first hub sends a refresh, the one of this number. @returns `answer` lets the portal answer, `refreshed` resolves when it has ended */
    async sendRefresh(count = 1) {
      const answer = site.holdAnswer();
      const refreshed = first.broker.grants.refresh(id);
      await expectSoon(() => refreshes(), count);
      return { answer, refreshed };
    },
    /** Makes the leases of the attempts that begin from now on end after some seconds. */
    async shortenLeases() {
      await (await siteServer()).sql(
        site.database,
        `CREATE FUNCTION latchkey.shorten() RETURNS trigger LANGUAGE plpgsql AS $$
           BEGIN NEW.leased_until := least(NEW.leased_until, clock_timestamp() + interval '3 s'); RETURN NEW; END $$;
         CREATE TRIGGER shorten BEFORE UPDATE ON latchkey.grants FOR EACH ROW
           WHEN (NEW.leased_until IS DISTINCT FROM OLD.leased_until AND NEW.leased_until IS NOT NULL)
           EXECUTE FUNCTION latchkey.shorten();`,
      );
    },
    [Symbol.asyncDispose]: () => resources.disposeAsync(),
  };
}

test('two hubs whose appliances wait for a token at once send one refresh, and both issue its token', async () => {
  await using site = await startPaired();
  const { first, second, id } = site;
  const { answer, refreshed } = await site.sendRefresh();
  const waiting = second.broker.grants.refresh(id);
  await expectSoon(() => second.broker.grants.get(id)?.leasedUntil !== null, true);
  answer();
  await Promise.all([refreshed, waiting]);
  expect(site.generations(first, second)).toEqual([2, 2]);
  expect(site.refreshes()).toBe(1);
  const tokens = [first, second].map(({ broker }) => broker.grants.get(id)?.grant.accessToken.reveal());
  expect(new Set(tokens).size).toBe(1);
  expect([first, second].flatMap(({ emitted }) => emitted.filter(({ kind }) => kind === 'refreshed'))).toHaveLength(1);
});

test('a token that the cloud has rejected is issued by no hub', async () => {
  await using site = await startPaired();
  const { first, second, id } = site;
  const answer = site.site.holdAnswer();
  const token = first.broker.grants.get(id)?.grant.accessToken.reveal() ?? '';
  await first.broker.grants.reportRejectedToken(id, token);
  await expectSoon(() => second.broker.grants.get(id)?.grant.accessTokenRejectedAt !== null, true);
  expect(await second.broker.tokenIssuer.issue(id, null, { timeout: 0 })).toMatchObject({ kind: 'unavailable' });
  answer();
  await expectSoon(() => site.generations(first, second), [2, 2]);
  expect(await second.broker.tokenIssuer.issue(id, null)).toMatchObject({ kind: 'token' });
});

test('a token request at a hub waits for the refresh of another one, and is told to come back at once if that takes long', async () => {
  await using site = await startPaired();
  const { first, second, id } = site;
  const answer = site.site.holdAnswer();
  await first.broker.grants.reportRejectedToken(id, first.broker.grants.get(id)?.grant.accessToken.reveal() ?? '');
  // Either hub may be the one that refreshes.
  const waiting = () => [first, second].find(({ broker }) => broker.grants.get(id)?.leasedUntil !== null);
  await expectSoon(() => waiting() !== undefined && site.refreshes() === 1, true);
  const { tokenIssuer } = waiting()?.broker ?? first.broker;
  expect(await tokenIssuer.issue(id, null, { timeout: 0 })).toMatchObject({ kind: 'unavailable', retryAfter: 1 });
  const issued = tokenIssuer.issue(id, null);
  answer();
  expect(await issued).toMatchObject({ kind: 'token' });
  expect(site.refreshes()).toBe(1);
});

test('a hub writes a rejection once, whether the first try fails or not', async () => {
  const results: (boolean | 'fails')[] = [];
  let fails = false;
  await using site = await startPaired((store) =>
    withMethods(store, {
      markTokenRejected: async (...call) => {
        results.push(fails ? 'fails' : await store.markTokenRejected(...call));
        if (fails) throw new Failure('store_unwritable', 'the database is away');
        return true;
      },
    }),
  );
  const { first, second, id } = site;
  // The other one would refresh the token, too.
  await second.kill();
  const token = () => first.broker.grants.get(id)?.grant.accessToken.reveal() ?? '';
  await first.broker.grants.reportRejectedToken(id, token());
  await expectSoon(() => site.generations(first), [2]);
  fails = true;
  await first.broker.grants.reportRejectedToken(id, token());
  fails = false;
  // Because an appliance rejected the token before it, too, it would be replaced only after a minute.
  await first.broker.grants.refresh(id);
  expect(site.generations(first)).toEqual([3]);
  expect(results).toEqual([true, 'fails', true]);
});

test('a late answer about the end of an attempt does not disturb the next one, which is under way', async () => {
  const late = Promise.withResolvers<boolean>();
  const ends: (() => Promise<boolean>)[] = [
    () => Promise.reject(new Failure('store_unwritable', 'the database is away')),
    // The database ends the attempt for the other write of the same outcome first.
    () => late.promise,
  ];
  await using site = await startPaired((store) =>
    withMethods(store, { endAttempt: (grant) => ends.shift()?.() ?? store.endAttempt(grant) }),
  );
  const { first, id } = site;
  site.site.portal.fail('token', { kind: 'answer', status: 503 });
  await first.broker.grants.refresh(id);
  const managed = first.broker.grants.get(id);
  expect(managed?.hasUnwrittenEnd).toBe(true);
  const written = managed?.writeUnsaved();
  const { answer, refreshed } = await site.sendRefresh(2);
  late.resolve(false);
  await written;
  expect(first.logged).not.toContain('answer_lost');
  answer();
  await refreshed;
  expect(site.generations(first)).toEqual([2]);
});

test('an attempt of a hub that has died counts as a lost answer when its lease has ended, and not before', async () => {
  await using site = await startPaired();
  const { first, second, id } = site;
  await site.shortenLeases();
  const { answer } = await site.sendRefresh();
  await expectSoon(() => second.broker.grants.get(id)?.leasedUntil !== null, true);
  await first.kill();
  answer();
  expect(await second.broker.tokenIssuer.issue(id, null, { timeout: 200 })).toMatchObject({ kind: 'token' });
  expect(site.refreshes()).toBe(1);
  await expectSoon(() => second.broker.grants.get(id)?.grant.doubt?.sends, 1);
  await expectSoon(() => second.emitted.map(({ kind }) => kind), ['refresh_failed']);
});

test('a hub that has no portal for a connection counts the lost answer of another hub as lost, once', async () => {
  await using site = await startPaired();
  const { first, second, id } = site;
  await second.kill();
  await site.shortenLeases();
  await using bare = await startSiteBroker(addressOf(site.site.database.url), 'latchkey-0000000b');
  const { answer } = await site.sendRefresh();
  await first.kill();
  answer();
  await expectSoon(() => bare.broker.grants.get(id)?.grant.doubt?.sends, 1);
  const server = await siteServer();
  const changes = () => server.sql(site.site.database, 'SELECT count(*) FROM latchkey.changes');
  const before = Number(await changes());
  await sleep(1000);
  expect(Number(await changes()) - before).toBeLessThan(5);
  const stored = await server.sql(site.site.database, 'SELECT attempt IS NULL, doubt IS NOT NULL FROM latchkey.grants');
  expect(stored).toBe('t|t');
});

test('a lease that lasts longer by the clock of the database is looked at again from time to time', async () => {
  await using site = await startPaired();
  const { first, second, id } = site;
  await site.shortenLeases();
  const { answer } = await site.sendRefresh();
  await expectSoon(() => second.broker.grants.get(id)?.leasedUntil !== null, true);
  await first.kill();
  answer();
  // As if that clock had been set back.
  const lengthen = "UPDATE latchkey.grants SET leased_until = leased_until + interval '1 min'";
  await (await siteServer()).sql(site.site.database, `DROP TRIGGER shorten ON latchkey.grants; ${lengthen}`);
  const tries = () => second.logged.filter((event) => event === 'refresh_interrupted').length;
  await expectSoon(() => tries() > 0, true);
  await sleep(2000);
  expect(tries()).toBe(1);
});

test('a hub that has a grant in memory goes on with it although its row was damaged', async () => {
  await using site = await startPaired();
  const { first, second, id } = site;
  await (await siteServer()).sql(site.site.database, "UPDATE latchkey.grants SET doubt = 'nonsense'");
  await first.broker.grants.applyNews(new Set([id]), false);
  await second.broker.grants.refresh(id);
  for (const { broker } of [first, second]) {
    expect(await broker.tokenIssuer.issue(id, null)).toMatchObject({ kind: 'token' });
  }
  expect(site.refreshes()).toBe(0);
});

test('a new grant that a replaced server has lost is written again by a hub that knows it', async () => {
  await using site = await startPaired();
  const { first, second, id } = site;
  await (await siteServer()).sql(site.site.database, 'DELETE FROM latchkey.grants');
  await second.broker.grants.applyNews(new Set(), true);
  expect(site.generations(first, second)).toEqual([1, 1]);
  expect((await first.store.grant(id))?.grant.generation).toBe(1);
});

test('tokens that a hub could not write are written as soon as the database is back, before anything is refreshed', async () => {
  await using site = await startPaired();
  const { first, id } = site;
  const { answer, refreshed } = await site.sendRefresh();
  const server = await siteServer();
  await server.stop('immediate');
  answer();
  await refreshed;
  expect(first.broker.grants.get(id)?.isUnsaved).toBe(true);
  // No refresh begins from now on, as if all of them waited for others.
  first.broker.grants.stop();
  await server.start();
  await expectSoon(() => first.broker.grants.get(id)?.isUnsaved, false);
  expect((await first.store.grant(id))?.grant.generation).toBe(2);
});

test('the outcome of an attempt that a hub could not write is written when the database is back', async () => {
  await using site = await startPaired();
  const { first, second, id } = site;
  const { promise, resolve: answer } = Promise.withResolvers<void>();
  const headers = { 'retry-after': '3600' };
  site.site.portal.fail('token', { kind: 'answer', status: 503, headers, until: promise });
  const refreshed = first.broker.grants.refresh(id);
  await expectSoon(() => site.refreshes(), 1);
  const server = await siteServer();
  await server.stop('immediate');
  answer();
  await refreshed;
  await server.start();
  await expectSoon(async () => (await first.store.grant(id).catch(() => null))?.attempt, null);
  await expectSoon(() => second.broker.grants.get(id)?.leasedUntil, null);
  await first.broker.grants.applyNews(new Set([id]), false);
  for (const { broker } of [first, second]) expect(broker.grants.get(id)?.grant.doubt).toBeNull();
  expect(first.broker.grants.get(id)?.health).toMatchObject({ kind: 'failing', problem: { code: 'portal_deferred' } });
  expect(site.refreshes()).toBe(1);
});

test.each(['written', 'only in memory'])(
  'new tokens that are %s survive a server that has lost the grant',
  async (where) => {
    await using site = await startPaired();
    const { first, id } = site;
    const answer = site.site.holdAnswer();
    const refreshed = first.broker.grants.refresh(id);
    await expectSoon(() => site.refreshes(), 1);
    const server = await siteServer();
    await server.sql(site.site.database, 'DELETE FROM latchkey.grants');
    if (where === 'only in memory') await server.stop('immediate');
    answer();
    await refreshed;
    if (where === 'only in memory') await server.start();
    await expectSoon(async () => (await first.store.grant(id).catch(() => null))?.grant.generation, 2);
    await expectSoon(() => first.broker.grants.get(id)?.isUnsaved, false);
    // Nothing is left to do, so the new tokens are not refreshed for a failure that has passed.
    expect(first.broker.grants.get(id)?.health).toEqual({ kind: 'good' });
    expect(site.refreshes()).toBe(1);
  },
);

test('an appliance that is removed while its request waits for a refresh gets no token', async () => {
  await using site = await startPaired();
  const { first, second, id } = site;
  // The other one would refresh the rejected token, too.
  await second.kill();
  const connection = first.connectionById(id).name;
  const options = { connection, scope: null, portal: null };
  const { appliance } = await first.broker.appliances.add('heater', options);
  const token = first.broker.grants.get(id)?.grant.accessToken.reveal() ?? '';
  const answer = site.site.holdAnswer();
  await first.broker.grants.reportRejectedToken(id, token);
  await expectSoon(() => site.refreshes(), 1);
  const issued = first.service.issueToken(appliance, { scope: null, minTtl: 0 });
  await first.broker.appliances.remove(appliance);
  answer();
  expect(await issued).toEqual({ kind: 'not_paired' });
});

test('a grant of which another hub may know more is refreshed when a switch to another server has settled', async () => {
  await using site = await startPaired();
  const { first, second, id } = site;
  const server = await siteServer();
  const sql = (text: string) => server.sql(site.site.database, text);
  await sql('UPDATE latchkey.grants SET confirmed = false; UPDATE latchkey.site SET switched_at = clock_timestamp()');
  void first.broker.grants.refresh(id);
  await expectSoon(() => first.broker.grants.get(id)?.leasedUntil !== null, true);
  expect(site.refreshes()).toBe(0);
  await sql('UPDATE latchkey.site SET switched_at = NULL');
  await second.broker.grants.applyNews(new Set(), true);
  await expectSoon(() => first.broker.grants.get(id)?.leasedUntil, null);
  await first.broker.grants.refresh(id);
  await expectSoon(() => site.generations(first, second), [2, 2]);
  expect(site.refreshes()).toBe(1);
});
