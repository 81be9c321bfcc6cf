// Imports of grants of other programs, beside another hub of the site, on a real PostgreSQL server.
import { expect, test } from 'vitest';
import { Secret } from '../../../src/core/secret.ts';
import { followRedirect } from '../../site/portal-site.ts';
import { expectSoon, withoutNotifications } from '../../site/site-brokers.ts';
import { useSiteServer } from '../../site/site-harness.ts';
import { OtherClient } from '../../support/other-client.ts';
import { refreshTokenAt, startWaiting } from './waiting-login.ts';

useSiteServer();

/** An import that the portal refuses. */
const REFUSED = { refreshToken: new Secret('not-a-refresh-token'), replace: true };

test('news and waiting appliances do not send an imported token again', async () => {
  await using waiting = await startWaiting();
  const { first, connection } = waiting;
  await followRedirect(first, await waiting.login());
  const token = first.broker.grants.get(connection.id)?.grant.refreshToken;
  if (token === null || token === undefined) throw new Error('there is no refresh token');
  const other = await first.addAppliance('heater');
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
});

test('an import does not replace a grant that another hub is refreshing', async () => {
  await using waiting = await startWaiting();
  const { first, second, connection } = waiting;
  await waiting.logInOnce();
  const answer = waiting.site.holdAnswer();
  const before = waiting.tokenRequests();
  const refreshed = second.broker.grants.refresh(connection.id);
  await expectSoon(() => waiting.tokenRequests(), before + 1);
  const run = () => first.broker.grantImports.run(connection, REFUSED);
  await expect(run()).rejects.toMatchObject({ code: 'not_allowed' });
  answer();
  await refreshed;
  expect((await first.store.grants.get(connection.id))?.grant.generation).toBe(2);
  await expectSoon(() => first.broker.grants.get(connection.id)?.grant.generation, 2);
  // Afterwards it is tried, and what is there stays because the portal refuses the token.
  await expect(run()).rejects.toMatchObject({
    code: 'import_failed',
    message: expect.stringContaining('nothing was kept'),
  });
  await first.broker.grants.refresh(connection.id);
  expect(first.broker.grants.get(connection.id)?.health.kind).toBe('good');
});

test('a failed import leaves a doubt that another hub has recorded and this one has had no news of', async () => {
  await using waiting = await startWaiting(withoutNotifications);
  const { site, first, second, connection } = waiting;
  const token = await waiting.logInOnce();
  await first.store.catchUp();
  site.portal.fail('token', { kind: 'commit then drop' });
  await second.broker.grants.refresh(connection.id);
  expect(first.broker.grants.get(connection.id)?.grant.doubt).toBeNull();
  await expect(first.broker.grantImports.run(connection, REFUSED)).rejects.toMatchObject({ code: 'import_failed' });
  expect((await first.store.grants.get(connection.id))?.grant.doubt).toMatchObject({ sends: 1 });
  expect(refreshTokenAt(first, connection.id)).toBe(token);
});

test('an import to a connection that another hub unpairs meanwhile revokes the tokens that it gets', async () => {
  await using waiting = await startWaiting(withoutNotifications);
  const { site, first, second, connection } = waiting;
  await waiting.logInOnce();
  const { refreshToken } = await OtherClient.logIn(site.emulator);
  const answer = site.holdAnswer();
  const before = waiting.tokenRequests();
  const request = { refreshToken: new Secret(refreshToken), replace: true };
  const imported = first.broker.grantImports.run(connection, request);
  await expectSoon(() => waiting.tokenRequests(), before + 1);
  await second.broker.grants.delete(connection.id);
  answer();
  await expect(imported).rejects.toMatchObject({ code: 'import_failed' });
  expect(site.emulator.grants()).toMatchObject([
    { generation: 1, revoked: false },
    { generation: 2, revoked: true },
  ]);
});
