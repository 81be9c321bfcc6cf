// Refreshes that are interrupted: by a dead hub, by an outage of the database, or by a server that has lost something.
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { startPaired } from '../../site/paired-site.ts';
import { expectSoon, startSiteBroker } from '../../site/site-brokers.ts';
import { addressOf, siteServer, useSiteServer } from '../../site/site-harness.ts';

useSiteServer();

test('an attempt of a hub that has died counts as a lost answer when its lease has ended, and not before', async () => {
  await using site = await startPaired();
  const { first, second, id } = site;
  await site.shortenLeases();
  const { answer } = await site.sendRefresh();
  await expectSoon(() => second.broker.grants.get(id)?.leasedUntil !== null, true);
  await first.kill();
  answer();
  const deadline = second.broker.environment.clock.now().uptime + 200;
  expect(await second.broker.tokenIssuer.issue(id, null, { deadline })).toMatchObject({ kind: 'token' });
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

test('a new grant that a replaced server has lost is written again by a hub that knows it', async () => {
  await using site = await startPaired();
  const { first, second, id } = site;
  await (await siteServer()).sql(site.site.database, 'DELETE FROM latchkey.grants');
  await second.broker.grants.applyNews(new Set(), true);
  expect(site.generations(first, second)).toEqual([1, 1]);
  expect((await first.store.grants.get(id))?.grant.generation).toBe(1);
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
  expect((await first.store.grants.get(id))?.grant.generation).toBe(2);
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
    await expectSoon(async () => (await first.store.grants.get(id).catch(() => null))?.grant.generation, 2);
    await expectSoon(() => first.broker.grants.get(id)?.isUnsaved, false);
    // Nothing is left of the failure to write them. The server was not trusted to have all that was written.
    const doubt = { kind: 'failing', problem: { code: 'answer_lost' } };
    expect(first.broker.grants.get(id)?.health).toMatchObject(where === 'written' ? { kind: 'good' } : doubt);
    expect(site.refreshes()).toBe(1);
  },
);
