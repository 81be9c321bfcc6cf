import { expect, it } from 'vitest';
import { HubProcess, stateParameterOf } from '../support/hub-process.ts';
import { startPausablePortal } from '../support/pausable-portal.ts';
import { countCodeSends, countRefreshSends, fetchPage, logIn, pairFleet, startRefresh } from './fleet.ts';
import { whoami } from './load.ts';

it('kill -9 at a strict portal keeps open pairings and unused grants, and reports lost answers', async () => {
  await using portal = await startPausablePortal();
  const { emulator } = portal;
  await using hub = await HubProcess.start({ emulator });
  const fleet = await pairFleet(hub, emulator, ['not-acted', 'acted']);
  for (const name of ['by-redirect', 'by-poll', 'exchanging']) await hub.addAppliance(name, 'Monitoring');
  const redirected = await hub.beginPairing('by-redirect');
  const polled = await hub.beginPairing('by-poll');
  const first = await hub.beginPairing('exchanging');
  const { location } = await emulator.login({ state: stateParameterOf(first), user: 'demo' });

  portal.hold('received');
  startRefresh(hub, 'not-acted');
  await portal.kept(1);
  portal.hold('answering');
  startRefresh(hub, 'acted');
  void fetchPage(location).catch(() => undefined);
  await portal.kept(3);
  await hub.kill('SIGKILL');
  portal.drop();
  await hub.launch();

  // By the log, because on a busy machine the retry may be over before the status can be read.
  const lost = hub.events('answer_lost').map(({ connection }) => connection);
  expect(lost.toSorted()).toEqual(['acted', 'not-acted']);
  expect((await hub.until('not-acted', ({ state }) => state !== 'retrying')).state).toBe('active');
  const refused = await hub.until('acted', ({ state }) => state !== 'retrying');
  expect(refused).toMatchObject({
    state: 'needs_pairing',
    problem: { code: 'refused', message: expect.stringMatching(/answer was lost on \d/) },
  });
  // The current access tokens are still valid, and are issued.
  for (const appliance of fleet) {
    const answer = await hub.requestToken(appliance);
    expect(answer).toMatchObject({ status: 200 });
    expect(await whoami(emulator, answer.body['access_token'])).toBe(200);
  }
  // A code is never sent again: there is a new link, and reloading the page of the old redirect does not connect the
  // appliance.
  const again = await hub.until('exchanging', ({ authorize_url }) => authorize_url !== undefined);
  expect(again.authorize_url).not.toBe(first.href);
  expect(await fetchPage(location)).not.toContain('is connected');
  expect(countCodeSends(emulator)).toEqual([1, 1, 1]);

  await hub.kill('SIGKILL');
  await hub.launch();
  expect((await hub.appliance('by-redirect')).authorize_url).toBe(redirected.href);
  expect((await hub.appliance('by-poll')).authorize_url).toBe(polled.href);
  await emulator.login({ state: stateParameterOf(polled), user: 'demo' });
  expect(await logIn(emulator, redirected)).toContain('is connected');
  await logIn(emulator, again.authorize_url);
  await hub.pair('acted', emulator);
  for (const name of ['by-redirect', 'by-poll', 'exchanging', 'acted'])
    await hub.until(name, ({ state }) => state === 'active');
  expect(countCodeSends(emulator)).toEqual([1, 1, 1, 1, 1, 1, 1]);
  expect(emulator.observations.codesRepeated).toBe(0);
  // The hub never sends the refused token again, neither later nor after another start.
  expect(countRefreshSends(emulator).map(({ sends }) => sends)).toEqual([2, 2]);
});
