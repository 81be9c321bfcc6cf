import { expect, it } from 'vitest';
import type { Exchange } from '../../src/emulator/index.ts';
import { eventually, HubProcess } from '../support/hub-process.ts';
import { startPortal } from '../support/portal.ts';
import {
  addAppliance,
  beginPairing,
  codeSends,
  logIn,
  pairFleet,
  refreshSends,
  startRefresh,
  stateOf,
  until,
  visit,
} from './fleet.ts';
import { whoami } from './load.ts';

it('kill -9 at a strict portal keeps open pairings and the grants that were not used, and says what was lost', async () => {
  await using portal = await keepingPortal();
  const { emulator } = portal;
  await using hub = await HubProcess.start({ emulator });
  const fleet = await pairFleet(hub, emulator, ['not-acted', 'acted']);
  for (const name of ['by-redirect', 'by-poll', 'exchanging']) await addAppliance(hub, name);
  const redirected = await beginPairing(hub, 'by-redirect');
  const polled = await beginPairing(hub, 'by-poll');
  const first = await beginPairing(hub, 'exchanging');
  const { location } = await emulator.login({ state: first, user: 'demo' });

  portal.keep = 'received';
  startRefresh(hub, 'not-acted');
  await portal.kept(1);
  portal.keep = 'answering';
  startRefresh(hub, 'acted');
  void visit(location).catch(() => undefined);
  await portal.kept(3);
  await hub.kill('SIGKILL');
  portal.drop();
  await hub.launch();

  // By the log: on a busy machine the replay is over before anybody can ask.
  const lost = hub.events('answer lost').map(({ appliance }) => appliance);
  expect(lost.toSorted()).toEqual(['acted', 'not-acted']);
  expect((await until(hub, 'not-acted', ({ state }) => state !== 'retrying')).state).toBe('active');
  const refused = await until(hub, 'acted', ({ state }) => state !== 'retrying');
  expect(refused).toMatchObject({
    state: 'needs_pairing',
    problem: { code: 'refused', message: expect.stringMatching(/answer was lost on \d/) },
  });
  // The token at hand lives, and is served.
  for (const appliance of fleet) {
    const answer = await hub.requestToken(appliance);
    expect(answer).toMatchObject({ status: 200 });
    expect(await whoami(emulator, answer.body['access_token'])).toBe(200);
  }
  // A code is never sent again: there is a fresh link, and somebody who reloads the page that the login ended on is told so.
  const again = await until(hub, 'exchanging', ({ authorize_url }) => authorize_url !== undefined);
  const fresh = stateOf(again.authorize_url);
  expect(fresh).not.toBe(first);
  expect(await visit(location)).not.toContain('is connected');
  expect(codeSends(emulator)).toEqual([1, 1, 1]);

  await hub.kill('SIGKILL');
  await hub.launch();
  expect(stateOf((await hub.appliance('by-redirect')).authorize_url) === redirected).toBe(true);
  expect(stateOf((await hub.appliance('by-poll')).authorize_url) === polled).toBe(true);
  await emulator.login({ state: polled, user: 'demo' });
  expect(await visit((await emulator.login({ state: redirected, user: 'demo' })).location)).toContain('is connected');
  await logIn(emulator, fresh);
  await logIn(emulator, await beginPairing(hub, 'acted'));
  for (const name of ['by-redirect', 'by-poll', 'exchanging', 'acted'])
    await until(hub, name, ({ state }) => state === 'active');
  expect(codeSends(emulator)).toEqual([1, 1, 1, 1, 1, 1, 1]);
  expect(emulator.observations.codesRepeated).toBe(0);
  // Neither time nor another start has it send the dead token once more.
  expect(refreshSends(emulator).map(({ sends }) => sends)).toEqual([2, 2]);
});

/** A portal whose token endpoint keeps requests waiting: before it does anything, or when it has and is to answer. */
async function keepingPortal() {
  const kept: (() => void)[] = [];
  const portal = {
    /** Where requests are kept from now on. */
    keep: null as 'received' | 'answering' | null,
    /** Resolves when so many are. */
    kept: (count: number) => eventually(async () => kept.length === count),
    /** None is kept any more, and those that were get no answer. */
    drop() {
      portal.keep = null;
      for (const end of kept.splice(0)) end();
    },
  };
  const at = (moment: 'received' | 'answering') => async (exchange: Exchange) => {
    if (exchange.endpoint !== 'token' || portal.keep !== moment) return;
    await new Promise<void>((resolve) => kept.push(resolve));
    exchange.drop();
  };
  const emulator = await startPortal({ intercept: { received: at('received'), answering: at('answering') } });
  return Object.assign(portal, { emulator, [Symbol.asyncDispose]: () => emulator.close() });
}
