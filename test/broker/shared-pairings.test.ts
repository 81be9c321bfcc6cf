import { describe, expect, test } from 'vitest';
import type { DeviceAuthorization } from '../../src/core/lan-service.ts';
import type { Pairing } from '../../src/core/pairings/pairing.ts';
import { Secret } from '../../src/core/secret.ts';
import { MINUTE, SECOND } from '../core/samples.ts';
import { rememberSecrets } from '../support/logs.ts';
import { BrokerHarness, type BrokerHarnessOptions, pairingResult, UNKNOWN_BROWSER } from './broker-harness.ts';

/** How long a new pairing waits for the code exchange of the previous one, in ms. */
const MAX_EXCHANGE_WAIT = 8 * SECOND;
const REDIRECT: BrokerHarnessOptions = { redirect: (nonce) => `http://192.168.1.7:8480/callback/${nonce}` };

/** A broker with an appliance. */
async function startHarness(options: BrokerHarnessOptions = {}) {
  const harness = await BrokerHarness.start(options);
  const { appliance } = await harness.addAppliance('wallbox');
  return { harness, appliance, id: appliance.id };
}

/** The appliance begins a device flow. */
async function begin(harness: BrokerHarness): Promise<DeviceAuthorization> {
  const outcome = await harness.run.deviceFlows.begin(harness.run.appliances.get('wallbox'), null);
  if (outcome.kind !== 'begun') throw new Error(`not begun: ${outcome.kind}`);
  rememberSecrets([outcome.authorization.deviceCode.reveal()]);
  return outcome.authorization;
}

/** A person opens the hub's page and continues. @returns the `state` of the portal's link */
async function open(harness: BrokerHarness, { userCode }: DeviceAuthorization): Promise<string> {
  const result = await harness.run.deviceFlows.openLink(userCode);
  if (result.kind !== 'link') throw new Error(`not opened: ${result.kind}`);
  return stateIn(result.authorizeUrl);
}

/** The `state` in the newest link of the appliance's pairing. */
function newestState(harness: BrokerHarness, id: string): string {
  const step = harness.run.pairings.newestFor(id)?.pairing.step;
  if (step?.kind !== 'waiting') throw new Error(`nobody can log in: the pairing is ${step?.kind}`);
  return stateIn(step.link.authorizeUrl);
}

function stateIn(authorizeUrl: string): string {
  return new URL(authorizeUrl).searchParams.get('state') ?? '';
}

async function login(harness: BrokerHarness, state: string, deny = false): Promise<URL> {
  return new URL((await harness.emulator.login({ state, user: 'demo', deny })).location);
}

/** Sends the parameters of the portal's redirect to the hub. */
function followRedirect(harness: BrokerHarness, location: URL): Promise<Pairing | null> {
  const nonce = location.pathname.split('/').at(-1) ?? '';
  const code = location.searchParams.get('code');
  return harness.run.pairings.receiveCallback(
    nonce,
    code === null ? { kind: 'error', error: 'access_denied' } : { kind: 'code', code: new Secret(code) },
    UNKNOWN_BROWSER,
  );
}

function poll(harness: BrokerHarness, id: string, { deviceCode }: DeviceAuthorization): string {
  const result = harness.run.deviceFlows.poll(id, deviceCode.reveal());
  return result.kind === 'failed' ? result.reason : result.kind;
}

/** A person logs in, and the portal holds the response to the code exchange until the test resolves it. */
async function startSlowExchange(harness: BrokerHarness, state: string) {
  const response = harness.portal.hold('token');
  const before = harness.emulator.grants().length;
  const callback = followRedirect(harness, await login(harness, state));
  await expect.poll(() => harness.emulator.grants().length).toBe(before + 1);
  return { response, callback };
}

describe("device flow during an installer's pairing", () => {
  test("a device flow joins an installer's open pairing, whose link stays valid and pairs the appliance", async () => {
    const { harness, id } = await startHarness();
    const run = await harness.beginPairing('wallbox');
    const state = newestState(harness, id);
    await harness.time.pass(MINUTE);
    const flow = await begin(harness);
    expect(harness.run.pairings.newestFor(id)).toBe(run);
    expect(poll(harness, id, flow)).toBe('pending');
    expect(newestState(harness, id)).toBe(state);
    await login(harness, state);
    await harness.time.pass(10 * SECOND);
    expect(pairingResult(run.pairing.step)).toBe('paired');
    expect(poll(harness, id, flow)).toBe('paired');
  });

  test("repeated device flows neither end an installer's pairing nor stop its polls", async () => {
    const { harness, id } = await startHarness();
    const run = await harness.beginPairing('wallbox');
    const state = newestState(harness, id);
    for (let count = 0; count < 10; count++) {
      await begin(harness);
      await harness.time.pass(22 * SECOND);
    }
    expect(pairingResult(run.pairing.step)).toBe('waiting');
    expect(harness.emulator.polls(state).length).toBeGreaterThanOrEqual(20);
    expect(harness.portal.requests('config')).toHaveLength(1);
  });

  test("a device flow prolongs an installer's pairing, but only up to a limit", async () => {
    const { harness, id } = await startHarness();
    const run = await harness.beginPairing('wallbox');
    await harness.time.pass(14 * MINUTE);
    expect((await begin(harness)).expiresIn).toBe(900);
    await harness.time.pass(12 * MINUTE);
    const last = await begin(harness);
    expect(last.expiresIn).toBe(240);
    await harness.time.pass(MINUTE);
    const fresh = await begin(harness);
    expect(fresh.expiresIn).toBe(900);
    expect(pairingResult(run.pairing.step)).toBe('replaced');
    expect([poll(harness, id, last), poll(harness, id, fresh)]).toEqual(['replaced', 'pending']);
    const requestsBefore = harness.portal.recordedRequests.length;
    await harness.time.pass(10 * MINUTE);
    expect(harness.portal.recordedRequests).toHaveLength(requestsBefore);
  });

  test("a device flow for another scope replaces the installer's pairing", async () => {
    const { harness, id } = await startHarness();
    const run = await harness.beginPairing('wallbox');
    await harness.run.connections.save({
      updatedConnections: [{ ...harness.connection('wallbox'), scope: 'RemoteControl' }],
    });
    const flow = await begin(harness);
    expect([pairingResult(run.pairing.step), poll(harness, id, flow)]).toEqual(['replaced', 'pending']);
  });
});

describe("installer's pairing during a device flow", () => {
  test("an installer who pairs during a device flow gets a link, and the device flow's codes stay valid", async () => {
    const { harness, id } = await startHarness();
    const flow = await begin(harness);
    await harness.time.pass(14 * MINUTE);
    const run = await harness.beginPairing('wallbox');
    expect(run.timeLeft).toBe(15 * MINUTE);
    expect(poll(harness, id, flow)).toBe('pending');
    await harness.time.pass(5 * MINUTE);
    await login(harness, newestState(harness, id));
    await harness.time.pass(10 * SECOND);
    expect([pairingResult(run.pairing.step), poll(harness, id, flow)]).toEqual(['paired', 'paired']);
  });

  test("an installer who pairs during a device flow gets a separate link, and the page's earlier link stays valid", async () => {
    const { harness, id } = await startHarness();
    const flow = await begin(harness);
    const state = await open(harness, flow);
    const run = await harness.beginPairing('wallbox');
    expect(newestState(harness, id)).not.toBe(state);
    await login(harness, state);
    await harness.time.pass(10 * SECOND);
    expect([pairingResult(run.pairing.step), poll(harness, id, flow)]).toEqual(['paired', 'paired']);
  });

  test.each(['by redirect', 'by polling'] as const)(
    'a login through the page succeeds while the portal gives the installer no link (%s)',
    async (way) => {
      const { harness, id } = await startHarness(way === 'by redirect' ? REDIRECT : {});
      const flow = await begin(harness);
      const state = await open(harness, flow);
      for (let times = 0; times < 4; times++) harness.portal.fail('config', { kind: 'answer', status: 503 });
      const run = await harness.beginPairing('wallbox');
      expect(pairingResult(run.pairing.step)).toBe('asking');
      const location = await login(harness, state);
      if (way === 'by redirect') await followRedirect(harness, location);
      else await harness.time.pass(10 * SECOND);
      expect([pairingResult(run.pairing.step), poll(harness, id, flow)]).toEqual(['paired', 'paired']);
    },
  );

  test.each([1, 4, 10])(
    'pairing again every %d s keeps the link that a person logs in through, and its polling',
    async (seconds) => {
      const { harness, id } = await startHarness();
      const flow = await begin(harness);
      const state = await open(harness, flow);
      const run = await harness.beginPairing('wallbox');
      for (let passed = 0; passed < 40; passed += seconds) {
        expect(await harness.beginPairing('wallbox')).toBe(run);
        expect(pairingResult(run.pairing.step)).toBe('waiting');
        expect(run.timeLeft).toBe(15 * MINUTE);
        await harness.time.pass(seconds * SECOND);
      }
      expect(harness.emulator.polls(state).length).toBeGreaterThanOrEqual(4);
      expect(harness.emulator.polls(state).length).toBeLessThanOrEqual(8);
      await login(harness, state);
      await harness.beginPairing('wallbox');
      await harness.time.pass(10 * SECOND);
      expect([pairingResult(run.pairing.step), poll(harness, id, flow)]).toEqual(['paired', 'paired']);
    },
  );

  test('an installer and a person on the page both get a link when they ask the portal at the same time', async () => {
    const { harness, appliance, id } = await startHarness();
    const flow = await begin(harness);
    await open(harness, flow);
    await harness.time.pass(MINUTE);
    const response = harness.portal.hold('config');
    const opening = open(harness, flow);
    await expect.poll(() => harness.portal.requests('config').length).toBe(2);
    await harness.run.pairings.begin(harness.connection(appliance.name));
    response.resolve();
    const state = await opening;
    await harness.time.settle();
    expect(newestState(harness, id)).toBe(state);
    await login(harness, state);
    await harness.time.pass(10 * SECOND);
    expect(poll(harness, id, flow)).toBe('paired');
  });
});

describe('repeated device flow of one appliance', () => {
  test("a repeated device flow replaces the previous codes, and the page's links stay valid", async () => {
    const { harness, id } = await startHarness();
    const first = await begin(harness);
    const state = await open(harness, first);
    await harness.time.pass(MINUTE);
    const second = await begin(harness);
    expect(second).toMatchObject({ expiresIn: 900 });
    expect([poll(harness, id, first), poll(harness, id, second)]).toEqual(['replaced', 'pending']);
    expect(harness.run.deviceFlows.findByUserCode(first.userCode)?.device).toMatchObject({ userCode: second.userCode });
    expect(await harness.run.deviceFlows.openLink(first.userCode)).toEqual({ kind: 'over' });
    await login(harness, state);
    await harness.time.pass(10 * SECOND);
    expect([poll(harness, id, first), poll(harness, id, second)]).toEqual(['replaced', 'paired']);
  });

  test('two simultaneous device flows of an appliance share one pairing, and one pair of codes is valid', async () => {
    const { harness, id } = await startHarness();
    const flows = await Promise.all([begin(harness), begin(harness)]);
    expect(flows.map((flow) => poll(harness, id, flow)).sort()).toEqual(['pending', 'replaced']);
    expect(await harness.run.store.pairings()).toHaveLength(1);
  });
});

describe('new pairing during a code exchange', () => {
  test('an appliance that begins a device flow during a code exchange gets the grant', async () => {
    const { harness, id } = await startHarness(REDIRECT);
    const { response, callback } = await startSlowExchange(harness, await open(harness, await begin(harness)));
    const second = await begin(harness);
    expect(poll(harness, id, second)).toBe('pending');
    response.resolve();
    expect((await callback)?.step).toMatchObject({ result: { kind: 'paired' } });
    await harness.time.pass(5 * SECOND);
    expect(poll(harness, id, second)).toBe('paired');
    expect(await harness.whoami(await harness.token(id))).toBe(200);
    await harness.restart();
    expect(poll(harness, id, second)).toBe('paired');
  });

  test("codes that are being saved when the exchange's response arrives do not undo the pairing", async () => {
    const { harness, id } = await startHarness(REDIRECT);
    const { response, callback } = await startSlowExchange(harness, await open(harness, await begin(harness)));
    const disk = harness.holdWrites('savePairing');
    const beginning = begin(harness);
    response.resolve();
    // Long enough for the hub to process the response; only the delayed write holds it up.
    await new Promise((resolve) => setTimeout(resolve, 50));
    disk.resolve();
    harness.delayedWrites.clear();
    const second = await beginning;
    await callback;
    await harness.restart();
    expect(poll(harness, id, second)).toBe('paired');
  });

  test('an installer who pairs again during a code exchange does not lose its grant', async () => {
    const { harness, id } = await startHarness(REDIRECT);
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
    const { harness, id } = await startHarness(REDIRECT);
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
      if (unpaired) await Promise.all([harness.run.pairings.end(id, 'cancelled'), harness.run.grants.delete(id)]);
      response.resolve();
      await callback;
      await harness.time.settle();
      expect(pairingResult(run.pairing.step)).toBe(unpaired ? 'cancelled' : 'paired');
      expect(await harness.token(id)).toEqual(unpaired ? 'not_paired' : expect.stringMatching(/.{20}/));
    }
  });

  test('a refusal by redirect does not end a pairing whose code is being exchanged', async () => {
    const { harness, id } = await startHarness(REDIRECT);
    const flow = await begin(harness);
    const states = [await open(harness, flow)];
    await harness.time.pass(MINUTE);
    states.push(await open(harness, flow));
    const refusal = await login(harness, states[0] ?? '', true);
    const { response, callback } = await startSlowExchange(harness, states[1] ?? '');
    const refused = followRedirect(harness, refusal);
    response.resolve();
    await Promise.all([callback, refused]);
    expect(poll(harness, id, flow)).toBe('paired');
  });
});

describe('restart with a shared pairing', () => {
  test.each(['stop', 'crash'] as const)(
    '(%s) a shared pairing keeps its link and all its codes after a restart',
    async (end) => {
      const { harness, id } = await startHarness();
      await harness.beginPairing('wallbox');
      const state = newestState(harness, id);
      const first = await begin(harness);
      const second = await begin(harness);
      await harness[end]();
      await harness.start();
      await harness.time.settle();
      expect([poll(harness, id, first), poll(harness, id, second)]).toEqual(['replaced', 'pending']);
      await login(harness, state);
      await harness.time.pass(10 * SECOND);
      expect(poll(harness, id, second)).toBe('paired');
      expect(harness.portal.requests('config')).toHaveLength(1);
    },
  );

  test("a restart continues to request the installer's link and keeps the links that people opened", async () => {
    const { harness, id } = await startHarness();
    const flow = await begin(harness);
    const state = await open(harness, flow);
    await harness.portal.disconnect();
    await harness.beginPairing('wallbox');
    await harness.stop();
    await harness.portal.reconnect();
    await harness.start();
    await harness.time.settle();
    expect(newestState(harness, id)).not.toBe(state);
    await login(harness, state);
    await harness.time.pass(10 * SECOND);
    expect(poll(harness, id, flow)).toBe('paired');
  });
});
