import { expect, test } from 'vitest';
import { AUTOMATIC_REDIRECT, followRedirect, logIn, PortalSite, type SiteOptions } from '../../site/portal-site.ts';
import { useSiteServer } from '../../site/site-harness.ts';
import { SeededRandom } from '../../support/seeded-random.ts';
import { waitFor } from '../../support/wait-for.ts';

useSiteServer();

const ROUNDS = 12;
/** What happens in a round happens within this time, in ms: about that of a few statements. */
const ROUND_TIME = 30;

const PORTALS: readonly [kind: string, options: SiteOptions][] = [
  ['a helper portal', {}],
  ['an OAuth 2.0 portal', AUTOMATIC_REDIRECT],
];

test.each(PORTALS)(
  'two hubs that handle a login at %s at the same time send its code once and agree',
  async (_, options) => {
    const random = new SeededRandom(1);
    await using site = await PortalSite.start(options);
    const first = await site.startHub(1);
    const connection = await first.addAppliance('wallbox');
    const second = await site.startHub(2);
    const hubs = [first, second];
    const steps = (id: string) => hubs.map((hub) => hub.stepOf(id));
    for (let round = 0; round < ROUNDS; round++) {
      const { id } = (await random.pick(hubs).broker.pairings.begin(connection)).pairing;
      await waitFor(() => expect(steps(id)).toEqual(['waiting', 'waiting']));
      const location = await logIn(site, first.pairing(id));
      const cookie = first.broker.pairings.browserToken(id).reveal();
      const actions = [
        ...hubs.map((hub) => () => followRedirect(hub, location, cookie)),
        ...(random.whole(0, 3) === 0 ? [() => random.pick(hubs).pairing(id)?.openLink()] : []),
        ...(random.whole(0, 3) === 0 ? [() => random.pick(hubs).pairing(id)?.takeOver()] : []),
        ...(random.whole(0, 3) === 0 ? [() => random.pick(hubs).pairing(id)?.fail('cancelled')] : []),
      ];
      await Promise.all(
        actions.map(async (act) => {
          await new Promise((resolve) => setTimeout(resolve, random.whole(0, ROUND_TIME)));
          await act();
        }),
      );
      await waitFor(() => {
        const [here, there] = steps(id);
        expect(here).toBe(there);
        expect(here).toMatch(/^(paired|cancelled)$/);
      });
    }
    expect(new Set(site.codesSent).size).toBe(site.codesSent.length);
    expect(site.emulator.observations.codesRepeated).toBe(0);
    // Each pairing is reported once, by one of the hubs.
    expect(hubs.flatMap(({ emitted }) => emitted)).toHaveLength(ROUNDS);
  },
);

test('a pairing that ends while news of it are read stays ended', async () => {
  await using site = await PortalSite.start();
  const hub = await site.startHub(1);
  const connection = await hub.addAppliance('wallbox');
  // However many turns the end begins after the news.
  for (let turns = 0; turns < 20; turns++) {
    const run = await hub.broker.pairings.begin(connection);
    const news = hub.broker.pairings.applyNews(new Set([run.pairing.id]), false);
    for (let turn = 0; turn < turns; turn++) await undefined;
    await Promise.all([news, run.fail('cancelled')]);
    await run[Symbol.asyncDispose]();
    expect(hub.stepOf(run.pairing.id)).toBe('cancelled');
    const [stored] = await hub.store.findPairings(new Set([run.pairing.id]));
    expect(stored?.step).toEqual(run.pairing.step);
  }
});
