import { describe, expect, test } from 'vitest';
import { rememberSecrets } from '../support/logs.ts';
import { waitFor } from '../support/wait-for.ts';
import { AUTOMATIC_REDIRECT, followRedirect, logIn, type PortalHub, startTwoHubs } from './portal-site.ts';
import { withoutNotifications } from './site-brokers.ts';
import { useSiteServer } from './site-harness.ts';

useSiteServer();

const PAIRED = { step: { kind: 'ended', result: { kind: 'paired' } } };

/** Both hubs show the pairing as paired, and each code was sent once. */
async function expectPairedOnce({ site, first, second }: Awaited<ReturnType<typeof startTwoHubs>>, id: string) {
  await waitFor(() => expect([first, second].map((hub) => hub.stepOf(id))).toEqual(['paired', 'paired']));
  expect(site.codesSent).toHaveLength(1);
  expect(site.emulator.observations.codesRepeated).toBe(0);
  const events = [first, second].flatMap(({ emitted }) => emitted.map(({ kind }) => kind));
  expect(events).toEqual(['paired']);
}

describe('a login on another hub of the site', () => {
  test('a login that one hub has begun ends on the hub to which the portal redirects the browser', async () => {
    await using hubs = await startTwoHubs();
    const { site, second } = hubs;
    const id = await hubs.begin();
    const location = await logIn(site, second.pairing(id));
    expect(await followRedirect(second, location)).toMatchObject(PAIRED);
    await expectPairedOnce(hubs, id);
    // Shown again, also by the other hub, it sends no code.
    expect(await followRedirect(hubs.first, location)).toMatchObject(PAIRED);
    expect(site.codesSent).toHaveLength(1);
  });

  test('a login that one hub has begun is seen by its polling, and the other hub shows that it is paired', async () => {
    await using hubs = await startTwoHubs();
    const id = await hubs.begin();
    await logIn(hubs.site, hubs.first.pairing(id));
    await expectPairedOnce(hubs, id);
    expect(hubs.first.emitted).toHaveLength(1);
  });

  test('only the hub that owns a pairing polls the portal', async () => {
    await using hubs = await startTwoHubs();
    const { site, first, second } = hubs;
    const id = await hubs.begin();
    expect([first, second].map((hub) => hub.pairing(id)?.runner.isOwned)).toEqual([true, false]);
    expect(await second.pairing(id)?.openLink()).toMatchObject({ kind: 'link' });
    await waitFor(() => expect([first, second].map((hub) => hub.pairing(id)?.runner.isOwned)).toEqual([false, true]));
    expect(site.portal.requests('config')).toHaveLength(2);
  });

  test('a login by OAuth 2.0 redirect ends on another hub with the code verifier of the hub that began it', async () => {
    await using hubs = await startTwoHubs(AUTOMATIC_REDIRECT);
    const { site, first, second } = hubs;
    const id = await hubs.begin();
    expect(await followRedirect(second, await logIn(site, first.pairing(id)))).toMatchObject(PAIRED);
    await expectPairedOnce(hubs, id);
    expect(second.emitted).toHaveLength(1);
  });

  test('a login ends on a hub that has no news of it yet', async () => {
    await using hubs = await startTwoHubs();
    const { site, first } = hubs;
    const third = await site.startHub(3, withoutNotifications);
    const id = await hubs.begin();
    const location = await logIn(site, first.pairing(id));
    expect(third.pairing(id)).toBeUndefined();
    expect(await followRedirect(third, location)).toMatchObject({ id, ...PAIRED });
    expect(site.codesSent).toHaveLength(1);
  });

  test('a browser that comes back to another hub is known by its cookie', async () => {
    await using hubs = await startTwoHubs();
    const { site, first, second } = hubs;
    const id = await hubs.begin();
    expect(second.broker.pairings.browserToken(id).reveal()).toBe(first.broker.pairings.browserToken(id).reveal());
    // The portal reports no login to those that poll.
    site.portal.fail('code', ...Array(1000).fill({ kind: 'answer', status: 404 } as const));
    const token = first.broker.pairings.browserToken(id).reveal();
    expect(await followRedirect(second, await logIn(site, first.pairing(id)), token)).toMatchObject(PAIRED);
    await expectPairedOnce(hubs, id);
  });

  test('a device flow that one hub has begun is opened, approved and polled on another', async () => {
    await using hubs = await startTwoHubs();
    const { site, first, second } = hubs;
    const appliance = first.broker.appliances.get('wallbox');
    const connection = first.broker.connections.ofAppliance(appliance);
    const begun = await first.broker.deviceFlows.begin(appliance, connection, null);
    if (begun.kind !== 'begun') throw new Error(begun.kind);
    const { userCode, deviceCode } = begun.authorization;
    rememberSecrets([deviceCode.reveal()]);
    const poll = (hub: PortalHub) => hub.broker.deviceFlows.poll(appliance.id, deviceCode.reveal()).kind;
    await waitFor(() => expect(poll(second)).toBe('pending'));
    expect(await second.broker.deviceFlows.openLink(userCode)).toMatchObject({ kind: 'link' });
    const run = second.broker.pairings.find(({ pairing }) => pairing.device?.userCode === userCode);
    await logIn(site, run);
    await waitFor(() => expect([first, second].map(poll)).toEqual(['paired', 'paired']));
    const again = await first.broker.deviceFlows.begin(appliance, connection, null);
    if (again.kind !== 'begun') throw new Error(again.kind);
    rememberSecrets([again.authorization.deviceCode.reveal()]);
    const approve = () => second.broker.deviceFlows.approve(again.authorization.userCode, 'Monitoring');
    await waitFor(async () => expect(await approve()).toBe(true));
    const pollAgain = () => first.broker.deviceFlows.poll(appliance.id, again.authorization.deviceCode.reveal()).kind;
    await waitFor(() => expect(pollAgain()).toBe('paired'));
  });
});

describe('two hubs that do the same', () => {
  test('two hubs that get one code by redirect at once send it once', async () => {
    await using hubs = await startTwoHubs(AUTOMATIC_REDIRECT);
    const { site, first, second } = hubs;
    const id = await hubs.begin();
    const location = await logIn(site, first.pairing(id));
    const shown = await Promise.all([first, second].map((hub) => followRedirect(hub, location)));
    expect(shown).toMatchObject([PAIRED, PAIRED]);
    await expectPairedOnce(hubs, id);
  });

  test('a hub that gets a code while another hub exchanges it waits for the outcome', async () => {
    await using hubs = await startTwoHubs(AUTOMATIC_REDIRECT);
    const { site, first, second } = hubs;
    const id = await hubs.begin();
    const location = await logIn(site, first.pairing(id));
    const answer = Promise.withResolvers<void>();
    site.portal.fail('token', { kind: 'wait', until: answer.promise });
    const exchange = followRedirect(first, location);
    await waitFor(() => expect(site.codesSent).toHaveLength(1));
    const waiting = followRedirect(second, location);
    setTimeout(answer.resolve, 1000);
    expect(await Promise.all([exchange, waiting])).toMatchObject([PAIRED, PAIRED]);
    await expectPairedOnce(hubs, id);
  });

  test('of two pairings that two hubs begin at once, both keep the same one open', async () => {
    await using hubs = await startTwoHubs();
    const { first, second, connection } = hubs;
    for (let round = 0; round < 5; round++) {
      await Promise.all([first, second].map((hub) => hub.broker.pairings.begin(connection)));
      await waitFor(() => {
        const [here, there] = [first, second].map((hub) => hub.openPairings(connection.id));
        expect(here).toHaveLength(1);
        expect(there).toEqual(here);
      });
    }
  });

  test('a pairing that is begun on another hub replaces the open one, and cancelling there ends it', async () => {
    await using hubs = await startTwoHubs();
    const { first, second, connection } = hubs;
    const id = await hubs.begin();
    const later = await second.broker.pairings.begin(connection);
    await waitFor(() => expect(first.stepOf(id)).toBe('replaced'));
    await waitFor(() => expect(first.stepOf(later.pairing.id)).toBe('waiting'));
    await first.pairing(later.pairing.id)?.fail('cancelled');
    await waitFor(() => expect(second.stepOf(later.pairing.id)).toBe('cancelled'));
    // Each end once; the first one by either hub, as the news of the second pairing come sooner or later.
    const emitted = [...first.emitted, ...second.emitted].map(({ kind }) => kind);
    expect(emitted).toEqual(['pairing_failed', 'pairing_failed']);
  });
});
