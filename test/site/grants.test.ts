import { expect, test } from 'vitest';
import { startPaired } from './paired-site.ts';
import { expectSoon } from './site-brokers.ts';
import { siteServer, useSiteServer } from './site-harness.ts';

useSiteServer();

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
  expect(await second.broker.tokenIssuer.issue(id, null, { deadline: 0 })).toMatchObject({ kind: 'unavailable' });
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
  expect(await tokenIssuer.issue(id, null, { deadline: 0 })).toMatchObject({ kind: 'unavailable', retryAfter: 1 });
  const issued = tokenIssuer.issue(id, null);
  answer();
  expect(await issued).toMatchObject({ kind: 'token' });
  expect(site.refreshes()).toBe(1);
});

test.each([
  ['a person forces', true, 2],
  ['an appliance waits for', false, 1],
])(
  'a refresh that %s during one of another hub, whose answer is lost, is sent if a person wants it',
  async (_, isForced, sent) => {
    await using site = await startPaired();
    const { first, second, id } = site;
    const { promise: until, resolve: answer } = Promise.withResolvers<void>();
    site.site.portal.fail('token', { kind: 'answer', status: 500, until });
    const refreshed = first.broker.grants.refresh(id);
    await expectSoon(() => site.refreshes(), 1);
    await expectSoon(() => second.broker.grants.get(id)?.leasedUntil !== null, true);
    const waiting = second.broker.grants.refresh(id, isForced);
    answer();
    await Promise.all([refreshed, waiting]);
    expect(site.refreshes()).toBe(sent);
  },
);

test('a hub that has not heard of a login at another hub revokes nothing of that connection', async () => {
  await using site = await startPaired();
  const { second, id } = site;
  let revoked = 0;
  const portal = {
    revoke: async () => {
      revoked += 1;
      return { kind: 'revoked' } as const;
    },
  };
  const late = second.broker.grants.stopManaging(id) ?? expect.fail();
  expect(await second.broker.grants.revoke(id, { name: 'wallbox', portal }, late)).toBe(false);
  expect(revoked).toBe(0);
  await site.first.broker.grants.delete(id);
  expect(await second.broker.grants.revoke(id, { name: 'wallbox', portal }, late)).toBe(true);
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

test('an appliance that is removed while its request waits for a refresh gets no token', async () => {
  await using site = await startPaired();
  const { first, second, id } = site;
  // The other one would refresh the rejected token, too.
  await second.kill();
  const connection = first.connectionById(id).name;
  const options = { connections: [connection], scope: null, portal: null };
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
  const { first, second } = site;
  const server = await siteServer();
  const sql = (text: string) => server.sql(site.site.database, text);
  await sql('UPDATE latchkey.grants SET confirmed = false; UPDATE latchkey.site SET switched_at = clock_timestamp()');
  for (const { broker } of [first, second]) await broker.grants.applyNews(new Set(), true);
  void first.broker.grants.refresh(site.id, true);
  await expectSoon(() => first.broker.grants.get(site.id)?.leasedUntil !== null, true);
  expect(site.refreshes()).toBe(0);
  await sql('UPDATE latchkey.site SET switched_at = NULL');
  await expectSoon(() => site.generations(first, second), [2, 2]);
  expect(site.refreshes()).toBe(1);
});
