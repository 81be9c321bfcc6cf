import { followRedirect, logIn, type PortalHub, type PortalSite, startTwoHubs } from './portal-site.ts';
import { expectSoon } from './site-brokers.ts';
import { siteServer } from './site-harness.ts';

/**
 * Two hubs of a site whose portal revokes a grant if a refresh token is used again, and a grant that both know.
 * @param wrap changes the store that the first one uses
 */
export async function startPaired(wrap?: Parameters<PortalSite['startHub']>[1]) {
  await using starting = new AsyncDisposableStack();
  const hubs = starting.use(await startTwoHubs({ emulator: { onReuse: 'revoke-family' } }, wrap));
  const { site, first, second } = hubs;
  const { id } = hubs.connection;
  await followRedirect(first, await logIn(site, first.pairing(await hubs.begin())));
  await expectSoon(() => generations(first, second), [1, 1]);
  const resources = starting.move();

  function generations(...hubs: readonly PortalHub[]) {
    return hubs.map((hub) => hub.broker.grants.get(id)?.grant.generation);
  }

  function refreshes(): number {
    return site.portal.requests('token').filter(({ form }) => form.get('grant_type') === 'refresh_token').length;
  }

  return {
    site,
    first,
    second,
    id,
    generations,
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
