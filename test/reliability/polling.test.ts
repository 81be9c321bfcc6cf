import { expect, it } from 'vitest';
import type { PairingRun } from '../../src/broker/pairings/pairing-run.ts';
import { BrokerHarness, pairingResult, UNKNOWN_BROWSER } from '../broker/broker-harness.ts';
import { followRedirect } from '../broker/logins.ts';
import { stateParameterOf } from '../support/hub-process.ts';

const MINUTE = 60_000;

/** Passes the parameters of the portal's redirect to the hub, as a browser does that the hub sent to the portal. */
function follow(home: BrokerHarness, location: string, { pairing }: PairingRun) {
  const browserToken = home.run.pairings.browserToken(pairing.id).reveal();
  return followRedirect(home, location, { ...UNKNOWN_BROWSER, browserToken });
}

it.each<[string, (home: BrokerHarness, run: PairingRun) => Promise<unknown>]>([
  ['expired', (home) => home.time.pass(15 * MINUTE)],
  ['cancelled', (home, { pairing }) => home.run.pairings.end(pairing.connection)],
  ['replaced', async (home) => (await home.beginPairing('wallbox')).fail('cancelled')],
  ['refused_by_user', async (home, run) => follow(home, await home.login(run, true), run)],
  ['paired', async (home, run) => follow(home, await home.login(run), run)],
])('the portal is not polled any more after a pairing ended as %s', async (result, end) => {
  await using home = await BrokerHarness.start({
    emulator: { codeUrlAfterExchange: 'served' },
    redirect: (nonce) => `http://192.168.1.7:8480/callback/${nonce}`,
  });
  await home.addAppliance('wallbox');
  const run = await home.beginPairing('wallbox');
  const { step } = run.pairing;
  const state = stateParameterOf(step.kind === 'waiting' ? step.link.authorizeUrl : undefined);
  await home.time.pass(MINUTE);
  expect(home.emulator.polls(state).length).toBeGreaterThanOrEqual(6);
  await end(home, run);
  await home.time.settle();
  expect(pairingResult(run.pairing.step)).toBe(result);
  const polls = home.emulator.polls(state).length;
  await home.time.pass(10 * MINUTE);
  expect(home.emulator.polls(state)).toHaveLength(polls);
});
