// The setup code and the browsers that are signed in, which the hubs of a site share, on a real PostgreSQL server.
import { expect, test } from 'vitest';
import { PAGE_SESSIONS_SETTING } from '../../../src/core/backup-contents.ts';
import type { BrowserSession } from '../../../src/core/setup-access.ts';
import {
  expectSoon,
  type SiteBroker,
  startSite,
  startSiteBroker,
  withoutNotifications,
} from '../../site/site-brokers.ts';
import { addressOf, siteServer, useSiteServer } from '../../site/site-harness.ts';
import { rememberSecrets } from '../../support/logs.ts';

useSiteServer();

const PHONE = { address: '192.168.1.20', browser: 'Firefox, Android' };

async function signIn({ broker }: SiteBroker, code = broker.access.code.reveal()): Promise<BrowserSession> {
  rememberSecrets([code]);
  const result = await broker.access.signIn(code, PHONE);
  if (result.kind !== 'signed_in') throw new Error(`not signed in: ${result.kind}`);
  rememberSecrets([result.session.cookie.reveal()]);
  return result.session;
}

/** Whether each session is known at each hub. */
function known(hubs: readonly SiteBroker[], sessions: readonly BrowserSession[]): boolean[][] {
  return hubs.map(({ broker }) => sessions.map(({ cookie }) => broker.access.findSession(cookie.reveal()) !== null));
}

test('two hubs that start at once have one setup code, one site id and one key for CSRF tokens', async () => {
  const { url } = await (await siteServer()).createDatabase();
  const hubs = await Promise.all(
    ['latchkey-0000000a', 'latchkey-0000000b'].map((id) => startSiteBroker(addressOf(url), id)),
  );
  const [a, b] = hubs;
  if (a === undefined || b === undefined) throw new Error('two hubs');
  await using _a = a;
  await using _b = b;
  expect(a.broker.access.code.reveal()).toBe(b.broker.access.code.reveal());
  expect(a.broker.access.proxiedCsrfToken('anna')).toBe(b.broker.access.proxiedCsrfToken('anna'));
  expect(a.store.site.siteId).toBe(b.store.site.siteId);
});

test('a browser that signs in at one hub is signed in at the other, and signs out at both', async () => {
  await using site = await startSite();
  const hubs = [site.a, site.b];
  const sessions = await Promise.all([signIn(site.a), signIn(site.b), signIn(site.a)]);
  await expectSoon(
    () => known(hubs, sessions),
    [
      [true, true, true],
      [true, true, true],
    ],
  );
  const [first, second, third] = sessions;
  if (first === undefined || second === undefined || third === undefined) throw new Error('three sessions');
  expect(site.b.broker.access.listBrowsers(second)).toHaveLength(3);
  await Promise.all([site.b.broker.access.signOut(first), site.a.broker.access.signOut(third)]);
  await expectSoon(
    () => known(hubs, sessions),
    [
      [false, true, false],
      [false, true, false],
    ],
  );
  const stored = JSON.parse((await site.a.store.settings.get(PAGE_SESSIONS_SETTING)) ?? '');
  expect(stored.sessions).toHaveLength(1);
});

test('a new setup code of one hub ends the sessions and sign-in addresses of the other, and opens its page', async () => {
  await using site = await startSite();
  const { a, b } = site;
  const former = a.broker.access.code.reveal();
  const session = await signIn(b);
  const address = b.broker.access.issueSignInToken().token.reveal();
  rememberSecrets([address]);
  await a.broker.access.rotate();
  // Without waiting for the news.
  expect((await b.broker.access.signIn(former, PHONE)).kind).toBe('wrong');
  expect(await b.broker.access.redeemSignInToken(address, PHONE)).toBeNull();
  expect(known([a, b], [session])).toEqual([[false], [false]]);
  const next = await signIn(b, a.broker.access.code.reveal());
  await expectSoon(
    () => known([a, b], [session, next]),
    [
      [false, true],
      [false, true],
    ],
  );
  expect(b.logged.map(({ event }) => event)).not.toContain('setup_code_rotated');
});

test('a hub that no notification reaches refuses a setup code that another hub has replaced', async () => {
  await using site = await startSite();
  await using c = await startSiteBroker(site.address, 'latchkey-0000000c', withoutNotifications);
  const former = c.broker.access.code.reveal();
  const address = c.broker.access.issueSignInToken().token.reveal();
  rememberSecrets([former, address]);
  await site.a.broker.access.rotate();
  expect(await c.broker.access.redeemSignInToken(address, PHONE)).toBeNull();
  expect((await c.broker.access.signIn(former, PHONE)).kind).toBe('wrong');
  await signIn(c, site.a.broker.access.code.reveal());
});

test('a browser that signs out while the database is away is signed out at all hubs when it is back', async () => {
  await using site = await startSite();
  const hubs = [site.a, site.b];
  const session = await signIn(site.a);
  await expectSoon(() => known(hubs, [session]), [[true], [true]]);
  const server = await siteServer();
  await server.stop();
  await site.a.broker.access.signOut(session);
  expect(known(hubs, [session])).toEqual([[false], [true]]);
  await server.start();
  await expect.poll(() => known(hubs, [session]), { timeout: 30_000 }).toEqual([[false], [false]]);
});
