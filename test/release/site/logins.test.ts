// Logins whose end meets what another hub does, or an outage of the database, on a real PostgreSQL server.
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { followRedirect, logIn } from '../../site/portal-site.ts';
import { expectSoon, withMethods } from '../../site/site-brokers.ts';
import { siteServer, useSiteServer } from '../../site/site-harness.ts';
import { COMMIT } from '../../support/postgres/proxy.ts';
import { logInWhileCutOff, refreshTokenAt, startWaiting } from './waiting-login.ts';

useSiteServer();

/** The query with which a hub measures the database's clock. */
const CLOCK = /SELECT \(extract\(epoch FROM clock_timestamp\(\)\) \* 1000\)::float8 AS now/;

test('the tokens of a login that come while the database is away are kept', async () => {
  await using waiting = await startWaiting();
  const { first, second, connection, id } = waiting;
  const location = await waiting.login();
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
  await expectSoon(() => [first, second].map((hub) => hub.stepOf(id)), ['paired', 'paired']);
});

test('a login that is only in memory replaces a grant that another hub refreshes meanwhile', async () => {
  await using waiting = await startWaiting();
  const { first, second, connection, proxy } = waiting;
  await waiting.logInOnce();
  const token = await logInWhileCutOff(waiting, await waiting.begin());
  await second.broker.grants.refresh(connection.id);
  proxy.pass();
  await expectSoon(() => refreshTokenAt(second, connection.id), token);
  expect(refreshTokenAt(first, connection.id)).toBe(token);
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
  expect((await second.store.grant(connection.id))?.grant.generation).toBe(1);
  // Nobody has to log in again for the pairing of the earlier login.
  await expectSoon(() => [first, second].map((hub) => hub.stepOf(id)), ['paired', 'paired']);
});

test('a login whose token another hub has used is not written again, although a clock was measured wrongly', async () => {
  let loseCommit: (() => void) | null = null;
  await using waiting = await startWaiting((store) =>
    withMethods(store, {
      completePairing(pairing, grant) {
        loseCommit?.();
        loseCommit = null;
        return store.completePairing(pairing, grant);
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
