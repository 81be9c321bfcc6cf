import { expect } from 'vitest';
import type { BrokerStore } from '../../../src/broker/ports.ts';
import type { PostgresStore } from '../../../src/store/postgres/postgres-store.ts';
import { AUTOMATIC_REDIRECT, followRedirect, logIn, type PortalHub, startTwoHubs } from '../../site/portal-site.ts';
import { expectSoon } from '../../site/site-brokers.ts';

/**
 * Two hubs of a site, and an appliance whose pairing waits for a login.
 * @param wrap changes the store that the broker of the first hub uses
 */
export async function startWaiting(wrap?: (store: PostgresStore) => BrokerStore) {
  await using starting = new AsyncDisposableStack();
  const hubs = starting.use(await startTwoHubs(AUTOMATIC_REDIRECT, wrap));
  const { site, first, second, connection } = hubs;
  const id = await hubs.begin();
  const resources = starting.move();

  return {
    ...hubs,
    id,
    login: () => logIn(site, first.pairing(id)),
    tokenRequests: () => site.portal.requests('token').length,
    /** How often a refresh token was sent. */
    sendsOf: (token: string) =>
      site.portal.requests('token').filter(({ form }) => form.get('refresh_token') === token).length,
    /** Somebody logs in on the first hub, and the second one has the grant. @returns its refresh token */
    async logInOnce(): Promise<string> {
      await followRedirect(first, await logIn(site, first.pairing(id)));
      await expectSoon(() => second.broker.grants.get(connection.id) !== undefined, true);
      return refreshTokenAt(second, connection.id);
    },
    [Symbol.asyncDispose]: () => resources.disposeAsync(),
  };
}

/** The first hub has got the tokens of a login while it was cut off from the database. @returns its refresh token */
export async function logInWhileCutOff(waiting: Awaited<ReturnType<typeof startWaiting>>, id: string): Promise<string> {
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

export function refreshTokenAt({ broker }: PortalHub, connection: string): string {
  return broker.grants.get(connection)?.grant.refreshToken?.reveal() ?? '';
}
