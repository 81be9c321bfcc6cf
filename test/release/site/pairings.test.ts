import { describe, expect, test } from 'vitest';
import {
  AUTOMATIC_REDIRECT,
  followRedirect,
  logIn,
  PortalSite,
  type SiteOptions,
  startTwoHubs,
} from '../../site/portal-site.ts';
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

test('other hubs hear of ended pairings that are no longer kept', async () => {
  await using site = await PortalSite.start();
  const [first, second] = [await site.startHub(1), await site.startHub(2)];
  const connection = await first.addAppliance('wallbox');
  const { pairing } = await first.broker.pairings.begin(connection);
  await waitFor(() => expect(second.pairing(pairing.id)).toBeDefined());
  for (let later = 0; later < 7; later++) await first.broker.pairings.begin(connection);
  await waitFor(() => expect(second.pairing(pairing.id)).toBeUndefined());
});

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
    const [stored] = await hub.store.pairings.all(new Set([run.pairing.id]));
    expect(stored?.step).toEqual(run.pairing.step);
  }
});

describe.concurrent('a hub that dies', () => {
  test('a pairing whose hub was killed goes on at another hub when its ownership has ended', async () => {
    await using hubs = await startTwoHubs();
    const { site, first, second } = hubs;
    const id = await hubs.begin();
    await first.kill();
    await logIn(site, second.pairing(id));
    await site.endOwnership();
    await waitFor(() => expect(second.stepOf(id)).toBe('paired'), 20_000);
    expect(site.codesSent).toHaveLength(1);
  });

  test('a hub that runs prolongs its ownership of open pairings', async () => {
    await using site = await PortalSite.start();
    const hub = await site.startHub(1);
    const { pairing } = await hub.broker.pairings.begin(await hub.addAppliance('wallbox'));
    await waitFor(() => expect(hub.stepOf(pairing.id)).toBe('waiting'));
    expect(await site.ownedTime()).toBeGreaterThan(0);
    await site.endOwnership();
    await waitFor(async () => expect(await site.ownedTime()).toBeGreaterThan(0), 20_000);
  });

  test('a code whose exchange a killed hub has begun is never sent by another hub, which asks for a fresh login', async () => {
    await using hubs = await startTwoHubs();
    const { site, first, second } = hubs;
    const id = await hubs.begin();
    const answer = Promise.withResolvers<void>();
    site.portal.fail('token', { kind: 'wait', until: answer.promise });
    await logIn(site, second.pairing(id));
    await waitFor(() => expect([site.codesSent.length, second.stepOf(id)]).toEqual([1, 'exchanging']));
    await first.kill();
    await site.endOwnership();
    await waitFor(() => expect(second.logged).toContain('code_exchange_interrupted'), 20_000);
    await waitFor(() => expect(second.stepOf(id)).toBe('waiting'));
    answer.resolve();
    expect(second.pairing(id)?.pairing.lastFailure).toBe('answer_lost');
    await logIn(site, second.pairing(id));
    await waitFor(() => expect(second.stepOf(id)).toBe('paired'));
    expect(new Set(site.codesSent).size).toBe(2);
    expect(site.codesSent).toHaveLength(2);
  });

  test('tokens that come when another hub has counted them as lost are used all the same', async () => {
    await using hubs = await startTwoHubs();
    const { site, first, second } = hubs;
    const id = await hubs.begin();
    const answer = Promise.withResolvers<void>();
    site.portal.fail('token', { kind: 'wait', until: answer.promise });
    await logIn(site, first.pairing(id));
    await waitFor(() => expect([site.codesSent.length, second.stepOf(id)]).toEqual([1, 'exchanging']));
    // As if the first hub were paused for longer than its ownership lasts.
    await site.endOwnership();
    expect(await second.pairing(id)?.runner.claimIfLapsed()).toBe(true);
    await waitFor(() => expect([first, second].map((hub) => hub.stepOf(id))).toEqual(['waiting', 'waiting']));
    answer.resolve();
    await waitFor(() => expect([first, second].map((hub) => hub.stepOf(id))).toEqual(['paired', 'paired']));
    expect(site.codesSent).toHaveLength(1);
    expect([first.emitted.map(({ kind }) => kind), second.emitted]).toEqual([['paired'], []]);
  });

  test('a hub that starts again continues its own pairings at once, and follows those of others', async () => {
    await using hubs = await startTwoHubs();
    const { site, first, second } = hubs;
    const id = await hubs.begin();
    await first.kill();
    const restarted = await site.startHub(1);
    expect(restarted.pairing(id)?.runner.isOwned).toBe(true);
    expect(second.pairing(id)?.runner.isOwned).toBe(false);
    const third = await site.startHub(3);
    expect(third.pairing(id)?.runner.isOwned).toBe(false);
  });
});
