import { expect, test } from 'vitest';
import { startPaired } from '../../site/paired-site.ts';
import { expectSoon } from '../../site/site-brokers.ts';
import { siteServer, useSiteServer } from '../../site/site-harness.ts';

useSiteServer();

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
