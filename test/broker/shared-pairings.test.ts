import { describe, expect, test } from 'vitest';
import { MINUTE, SECOND } from '../core/samples.ts';
import { BrokerHarness, pairingResult } from './broker-harness.ts';
import { beginFlow, expectPairedBy, followRedirect, logInAt, openFlow, pollFlow, REDIRECT, stateIn } from './logins.ts';

/** How long a new pairing waits for the code exchange of the previous one, in ms. */
const MAX_EXCHANGE_WAIT = 8 * SECOND;

/** The `state` in the newest link of the appliance's pairing. */
function newestState(harness: BrokerHarness, id: string): string {
  const step = harness.run.pairings.newestFor(id)?.pairing.step;
  if (step?.kind !== 'waiting') throw new Error(`nobody can log in: the pairing is ${step?.kind}`);
  return stateIn(step.link.authorizeUrl);
}

/** A person logs in, and the portal holds the response to the code exchange until the test resolves it. */
async function startSlowExchange(harness: BrokerHarness, state: string) {
  const response = harness.portal.hold('token');
  const before = harness.emulator.grants().length;
  const callback = followRedirect(harness, await logInAt(harness, state));
  await expect.poll(() => harness.emulator.grants().length).toBe(before + 1);
  return { response, callback };
}

describe("device flow during an installer's pairing", () => {
  test("a device flow joins an installer's open pairing, whose link stays valid and pairs the appliance", async () => {
    const { harness, id } = await BrokerHarness.startUnpaired();
    const run = await harness.beginPairing('wallbox');
    const state = newestState(harness, id);
    await harness.time.pass(MINUTE);
    const flow = await beginFlow(harness);
    expect(harness.run.pairings.newestFor(id)).toBe(run);
    expect(pollFlow(harness, id, flow)).toBe('pending');
    expect(newestState(harness, id)).toBe(state);
    await logInAt(harness, state);
    await harness.time.pass(10 * SECOND);
    expect(pairingResult(run.pairing.step)).toBe('paired');
    expect(pollFlow(harness, id, flow)).toBe('paired');
  });

  test("a device flow prolongs an installer's pairing, but only up to a limit", async () => {
    const { harness, id } = await BrokerHarness.startUnpaired();
    const run = await harness.beginPairing('wallbox');
    await harness.time.pass(14 * MINUTE);
    expect((await beginFlow(harness)).expiresIn).toBe(900);
    await harness.time.pass(12 * MINUTE);
    const last = await beginFlow(harness);
    expect(last.expiresIn).toBe(240);
    await harness.time.pass(MINUTE);
    const fresh = await beginFlow(harness);
    expect(fresh.expiresIn).toBe(900);
    expect(pairingResult(run.pairing.step)).toBe('replaced');
    expect([pollFlow(harness, id, last), pollFlow(harness, id, fresh)]).toEqual(['replaced', 'pending']);
    const requestsBefore = harness.portal.recordedRequests.length;
    await harness.time.pass(10 * MINUTE);
    expect(harness.portal.recordedRequests).toHaveLength(requestsBefore);
  });

  test("a device flow for another scope replaces the installer's pairing", async () => {
    const { harness, id } = await BrokerHarness.startUnpaired();
    const run = await harness.beginPairing('wallbox');
    await harness.run.connections.save(() => ({
      updatedConnections: [{ ...harness.connection('wallbox'), scope: 'RemoteControl' }],
    }));
    const flow = await beginFlow(harness);
    expect([pairingResult(run.pairing.step), pollFlow(harness, id, flow)]).toEqual(['replaced', 'pending']);
  });
});

describe("installer's pairing during a device flow", () => {
  test("an installer who pairs during a device flow gets a separate link, and the page's earlier link stays valid", async () => {
    const { harness, id } = await BrokerHarness.startUnpaired();
    const flow = await beginFlow(harness);
    const state = await openFlow(harness, flow);
    const run = await harness.beginPairing('wallbox');
    expect(newestState(harness, id)).not.toBe(state);
    await logInAt(harness, state);
    await harness.time.pass(10 * SECOND);
    expect([pairingResult(run.pairing.step), pollFlow(harness, id, flow)]).toEqual(['paired', 'paired']);
  });

  test.each(['by redirect', 'by polling'] as const)(
    'a login through the page succeeds while the portal gives the installer no link (%s)',
    async (way) => {
      const { harness, id } = await BrokerHarness.startUnpaired(way === 'by redirect' ? REDIRECT : {});
      const flow = await beginFlow(harness);
      const state = await openFlow(harness, flow);
      for (let times = 0; times < 4; times++) harness.portal.fail('config', { kind: 'answer', status: 503 });
      const run = await harness.beginPairing('wallbox');
      expect(pairingResult(run.pairing.step)).toBe('asking');
      const location = await logInAt(harness, state);
      if (way === 'by redirect') await followRedirect(harness, location);
      else await harness.time.pass(10 * SECOND);
      expect([pairingResult(run.pairing.step), pollFlow(harness, id, flow)]).toEqual(['paired', 'paired']);
    },
  );

  test.each([1, 4, 10])(
    'pairing again every %d s keeps the link that a person logs in through, and its polling',
    async (seconds) => {
      const { harness, id } = await BrokerHarness.startUnpaired();
      const flow = await beginFlow(harness);
      const state = await openFlow(harness, flow);
      const run = await harness.beginPairing('wallbox');
      for (let passed = 0; passed < 40; passed += seconds) {
        expect(await harness.beginPairing('wallbox')).toBe(run);
        expect(pairingResult(run.pairing.step)).toBe('waiting');
        expect(run.runner.timeLeft).toBe(15 * MINUTE);
        await harness.time.pass(seconds * SECOND);
      }
      expect(harness.emulator.polls(state).length).toBeGreaterThanOrEqual(4);
      expect(harness.emulator.polls(state).length).toBeLessThanOrEqual(8);
      await logInAt(harness, state);
      await harness.beginPairing('wallbox');
      await harness.time.pass(10 * SECOND);
      expect([pairingResult(run.pairing.step), pollFlow(harness, id, flow)]).toEqual(['paired', 'paired']);
    },
  );
});

describe('repeated device flow of one appliance', () => {
  test("a repeated device flow replaces the previous codes, and the page's links stay valid", async () => {
    const { harness, id } = await BrokerHarness.startUnpaired();
    const first = await beginFlow(harness);
    const state = await openFlow(harness, first);
    await harness.time.pass(MINUTE);
    const second = await beginFlow(harness);
    expect(second).toMatchObject({ expiresIn: 900 });
    expect([pollFlow(harness, id, first), pollFlow(harness, id, second)]).toEqual(['replaced', 'pending']);
    expect(harness.run.deviceFlows.findByUserCode(first.userCode)?.device).toMatchObject({ userCode: second.userCode });
    expect(await harness.run.deviceFlows.openLink(first.userCode)).toEqual({ kind: 'over' });
    await logInAt(harness, state);
    await harness.time.pass(10 * SECOND);
    expect([pollFlow(harness, id, first), pollFlow(harness, id, second)]).toEqual(['replaced', 'paired']);
  });

  test('two simultaneous device flows of an appliance share one pairing, and one pair of codes is valid', async () => {
    const { harness, id } = await BrokerHarness.startUnpaired();
    const flows = await Promise.all([beginFlow(harness), beginFlow(harness)]);
    expect(flows.map((flow) => pollFlow(harness, id, flow)).sort()).toEqual(['pending', 'replaced']);
    expect(await harness.run.store.pairings.all()).toHaveLength(1);
  });
});

describe('new pairing during a code exchange', () => {
  test('an appliance that begins a device flow during a code exchange gets the grant', async () => {
    const { harness, id } = await BrokerHarness.startUnpaired(REDIRECT);
    const { response, callback } = await startSlowExchange(harness, await openFlow(harness, await beginFlow(harness)));
    const second = await beginFlow(harness);
    expect(pollFlow(harness, id, second)).toBe('pending');
    response.resolve();
    expect((await callback)?.step).toMatchObject({ result: { kind: 'paired' } });
    await harness.time.pass(5 * SECOND);
    expect(pollFlow(harness, id, second)).toBe('paired');
    expect(await harness.whoami(await harness.token(id))).toBe(200);
    await harness.restart();
    expect(pollFlow(harness, id, second)).toBe('paired');
  });

  test('an installer who pairs again during a code exchange does not lose its grant', async () => {
    const { harness, id } = await BrokerHarness.startUnpaired(REDIRECT);
    const run = await harness.beginPairing('wallbox');
    const { response, callback } = await startSlowExchange(harness, newestState(harness, id));
    const again = harness.run.pairings.begin(harness.connection('wallbox'));
    response.resolve();
    await callback;
    await again;
    await harness.time.settle();
    expect(pairingResult((await again).pairing.step)).toBe('waiting');
    expect(pairingResult(run.pairing.step)).toBe('paired');
    expect(await harness.whoami(await harness.token(id))).toBe(200);
  });

  test('a code exchange slower than the next pairing waits still brings the grant, unless it was unpaired', async () => {
    const { harness, id } = await BrokerHarness.startUnpaired(REDIRECT);
    for (const unpaired of [false, true]) {
      const run = await harness.beginPairing('wallbox');
      const { response, callback } = await startSlowExchange(harness, newestState(harness, id));
      const waits = () => harness.time.delays.filter((delay) => delay === MAX_EXCHANGE_WAIT).length;
      const before = waits();
      const again = harness.run.pairings.begin(harness.connection('wallbox'));
      await expect.poll(waits).toBe(before + 1);
      harness.time.skip(MAX_EXCHANGE_WAIT);
      expect((await again).pairing.id).not.toBe(run.pairing.id);
      expect(pairingResult(run.pairing.step)).toBe('exchanging');
      if (unpaired) await Promise.all([harness.run.pairings.end(id), harness.run.grants.delete(id)]);
      response.resolve();
      await callback;
      await harness.time.settle();
      expect(pairingResult(run.pairing.step)).toBe(unpaired ? 'cancelled' : 'paired');
      expect(await harness.token(id)).toEqual(unpaired ? 'not_paired' : expect.stringMatching(/.{20}/));
    }
  });
});

describe('restart with a shared pairing', () => {
  test.each(['stop', 'crash'] as const)(
    '(%s) a shared pairing keeps its link and all its codes after a restart',
    async (end) => {
      const { harness, id } = await BrokerHarness.startUnpaired();
      await harness.beginPairing('wallbox');
      const state = newestState(harness, id);
      const first = await beginFlow(harness);
      const second = await beginFlow(harness);
      await harness[end]();
      await harness.start();
      await harness.time.settle();
      expect([pollFlow(harness, id, first), pollFlow(harness, id, second)]).toEqual(['replaced', 'pending']);
      await expectPairedBy(harness, id, second, state);
      expect(harness.portal.requests('config')).toHaveLength(1);
    },
  );

  test("a restart continues to request the installer's link and keeps the links that people opened", async () => {
    const { harness, id } = await BrokerHarness.startUnpaired();
    const flow = await beginFlow(harness);
    const state = await openFlow(harness, flow);
    await harness.portal.disconnect();
    await harness.beginPairing('wallbox');
    await harness.stop();
    await harness.portal.reconnect();
    await harness.start();
    await harness.time.settle();
    expect(newestState(harness, id)).not.toBe(state);
    await expectPairedBy(harness, id, flow, state);
  });
});
