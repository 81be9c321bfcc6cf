import { describe, expect, test } from 'vitest';
import type { DeviceAuthorization } from '../../src/core/lan-service.ts';
import type { Pairing } from '../../src/core/pairings/pairing.ts';
import { Secret } from '../../src/core/secret.ts';
import { rememberSecrets } from '../support/logs.ts';
import { BrokerHarness, type BrokerHarnessOptions, pairingResult, UNKNOWN_BROWSER } from './broker-harness.ts';

const SECOND = 1000;
const MINUTE = 60 * SECOND;
/** How long a new pairing waits for an exchange of the one before. */
const PATIENCE = 8 * SECOND;
const REDIRECT: BrokerHarnessOptions = { redirect: (nonce) => `http://192.168.1.7:8480/callback/${nonce}` };

/** A home with an appliance. */
async function added(options: BrokerHarnessOptions = {}) {
  const home = await BrokerHarness.start(options);
  const { appliance } = await home.addAppliance('wallbox');
  return { home, appliance, id: appliance.id };
}

/** The appliance begins a device flow. */
async function begin(home: BrokerHarness): Promise<DeviceAuthorization> {
  const outcome = await home.run.deviceFlows.begin(home.run.appliances.get('wallbox'), null);
  if (outcome.kind !== 'begun') throw new Error(`not begun: ${outcome.kind}`);
  rememberSecrets([outcome.authorization.deviceCode.reveal()]);
  return outcome.authorization;
}

/** A person opens the hub's page and goes on; gives the portal's state. */
async function open(home: BrokerHarness, { userCode }: DeviceAuthorization): Promise<string> {
  const result = await home.run.deviceFlows.openLink(userCode);
  if (result.kind !== 'link') throw new Error(`not opened: ${result.kind}`);
  return stateIn(result.authorizeUrl);
}

/** The portal's state in the newest link of the appliance's pairing. */
function newest(home: BrokerHarness, id: string): string {
  const step = home.run.pairings.newestFor(id)?.pairing.step;
  if (step?.kind !== 'waiting') throw new Error(`nobody can log in: the pairing is ${step?.kind}`);
  return stateIn(step.link.authorizeUrl);
}

function stateIn(authorizeUrl: string): string {
  return new URL(authorizeUrl).searchParams.get('state') ?? '';
}

async function login(home: BrokerHarness, state: string, deny = false): Promise<URL> {
  return new URL((await home.emulator.login({ state, user: 'demo', deny })).location);
}

/** Brings to the hub what the portal's redirect carries. */
function follow(home: BrokerHarness, location: URL): Promise<Pairing | null> {
  const nonce = location.pathname.split('/').at(-1) ?? '';
  const code = location.searchParams.get('code');
  return home.run.pairings.receiveCallback(
    nonce,
    code === null ? { kind: 'error', error: 'access_denied' } : { kind: 'code', code: new Secret(code) },
    UNKNOWN_BROWSER,
  );
}

function poll(home: BrokerHarness, id: string, { deviceCode }: DeviceAuthorization): string {
  const result = home.run.deviceFlows.poll(id, deviceCode.reveal());
  return result.kind === 'failed' ? result.reason : result.kind;
}

/** The portal keeps the answer to the next exchange back until told; a person has logged in, and it is under way. */
async function exchanging(home: BrokerHarness, state: string) {
  const answer = Promise.withResolvers<void>();
  home.portal.fail('token', { kind: 'wait', until: answer.promise });
  const before = home.emulator.grants().length;
  const landing = follow(home, await login(home, state));
  await expect.poll(() => home.emulator.grants().length).toBe(before + 1);
  return { answer, landing };
}

describe("device flow during an installer's pairing", () => {
  test("a device flow joins an installer's open pairing, whose link stays valid and pairs the appliance", async () => {
    const { home, id } = await added();
    await using _ = home;
    const run = await home.beginPairing('wallbox');
    const state = newest(home, id);
    await home.time.pass(MINUTE);
    const flow = await begin(home);
    expect(home.run.pairings.newestFor(id)).toBe(run);
    expect(poll(home, id, flow)).toBe('pending');
    expect(newest(home, id)).toBe(state);
    await login(home, state);
    await home.time.pass(10 * SECOND);
    expect(pairingResult(run.pairing.step)).toBe('paired');
    expect(poll(home, id, flow)).toBe('paired');
  });

  test("repeated device flows neither end an installer's pairing nor stop its polls", async () => {
    const { home, id } = await added();
    await using _ = home;
    const run = await home.beginPairing('wallbox');
    const state = newest(home, id);
    for (let count = 0; count < 10; count++) {
      await begin(home);
      await home.time.pass(22 * SECOND);
    }
    expect(pairingResult(run.pairing.step)).toBe('waiting');
    expect(home.emulator.polls(state).length).toBeGreaterThanOrEqual(20);
    expect(home.portal.requests('config')).toHaveLength(1);
  });

  test("a device flow prolongs an installer's pairing, but only up to a limit", async () => {
    const { home, id } = await added();
    await using _ = home;
    const run = await home.beginPairing('wallbox');
    await home.time.pass(14 * MINUTE);
    expect((await begin(home)).expiresIn).toBe(900);
    await home.time.pass(12 * MINUTE);
    const last = await begin(home);
    expect(last.expiresIn).toBe(240);
    await home.time.pass(MINUTE);
    const fresh = await begin(home);
    expect(fresh.expiresIn).toBe(900);
    expect(pairingResult(run.pairing.step)).toBe('replaced');
    expect([poll(home, id, last), poll(home, id, fresh)]).toEqual(['replaced', 'pending']);
    const asked = home.portal.recordedRequests.length;
    await home.time.pass(10 * MINUTE);
    expect(home.portal.recordedRequests).toHaveLength(asked);
  });

  test("a device flow for another scope replaces the installer's pairing", async () => {
    const { home, id } = await added();
    await using _ = home;
    const run = await home.beginPairing('wallbox');
    await home.run.appliances.update(id, (appliance) => ({ ...appliance, scope: 'RemoteControl' }));
    const flow = await begin(home);
    expect([pairingResult(run.pairing.step), poll(home, id, flow)]).toEqual(['replaced', 'pending']);
  });
});

describe("installer's pairing during a device flow", () => {
  test("an installer who pairs during a device flow gets a link, and the device flow's codes stay valid", async () => {
    const { home, id } = await added();
    await using _ = home;
    const flow = await begin(home);
    await home.time.pass(14 * MINUTE);
    const run = await home.beginPairing('wallbox');
    expect(run.timeLeft).toBe(15 * MINUTE);
    expect(poll(home, id, flow)).toBe('pending');
    await home.time.pass(5 * MINUTE);
    await login(home, newest(home, id));
    await home.time.pass(10 * SECOND);
    expect([pairingResult(run.pairing.step), poll(home, id, flow)]).toEqual(['paired', 'paired']);
  });

  test("an installer who pairs during a device flow gets a separate link, and the page's earlier link stays valid", async () => {
    const { home, id } = await added();
    await using _ = home;
    const flow = await begin(home);
    const state = await open(home, flow);
    const run = await home.beginPairing('wallbox');
    expect(newest(home, id)).not.toBe(state);
    await login(home, state);
    await home.time.pass(10 * SECOND);
    expect([pairingResult(run.pairing.step), poll(home, id, flow)]).toEqual(['paired', 'paired']);
  });

  test.each(['by redirect', 'by polling'] as const)(
    'a login through the page succeeds while the portal gives the installer no link (%s)',
    async (way) => {
      const { home, id } = await added(way === 'by redirect' ? REDIRECT : {});
      await using _ = home;
      const flow = await begin(home);
      const state = await open(home, flow);
      for (let times = 0; times < 4; times++) home.portal.fail('config', { kind: 'answer', status: 503 });
      const run = await home.beginPairing('wallbox');
      expect(pairingResult(run.pairing.step)).toBe('asking');
      const location = await login(home, state);
      if (way === 'by redirect') await follow(home, location);
      else await home.time.pass(10 * SECOND);
      expect([pairingResult(run.pairing.step), poll(home, id, flow)]).toEqual(['paired', 'paired']);
    },
  );

  test.each([1, 4, 10])(
    'pairing again every %d s keeps the link that a person logs in through, and its polling',
    async (seconds) => {
      const { home, id } = await added();
      await using _ = home;
      const flow = await begin(home);
      const state = await open(home, flow);
      const run = await home.beginPairing('wallbox');
      for (let passed = 0; passed < 40; passed += seconds) {
        expect(await home.beginPairing('wallbox')).toBe(run);
        expect(pairingResult(run.pairing.step)).toBe('waiting');
        expect(run.timeLeft).toBe(15 * MINUTE);
        await home.time.pass(seconds * SECOND);
      }
      expect(home.emulator.polls(state).length).toBeGreaterThanOrEqual(4);
      expect(home.emulator.polls(state).length).toBeLessThanOrEqual(8);
      await login(home, state);
      await home.beginPairing('wallbox');
      await home.time.pass(10 * SECOND);
      expect([pairingResult(run.pairing.step), poll(home, id, flow)]).toEqual(['paired', 'paired']);
    },
  );

  test('an installer and a person on the page both get a link when they ask the portal at the same time', async () => {
    const { home, appliance, id } = await added();
    await using _ = home;
    const flow = await begin(home);
    await open(home, flow);
    await home.time.pass(MINUTE);
    const answer = Promise.withResolvers<void>();
    home.portal.fail('config', { kind: 'wait', until: answer.promise });
    const opening = open(home, flow);
    await expect.poll(() => home.portal.requests('config').length).toBe(2);
    await home.run.pairings.begin(appliance);
    answer.resolve();
    const state = await opening;
    await home.time.settle();
    expect(newest(home, id)).toBe(state);
    await login(home, state);
    await home.time.pass(10 * SECOND);
    expect(poll(home, id, flow)).toBe('paired');
  });
});

describe('repeated device flow of one appliance', () => {
  test("a repeated device flow replaces the previous codes, and the page's links stay valid", async () => {
    const { home, id } = await added();
    await using _ = home;
    const first = await begin(home);
    const state = await open(home, first);
    await home.time.pass(MINUTE);
    const second = await begin(home);
    expect(second).toMatchObject({ expiresIn: 900 });
    expect([poll(home, id, first), poll(home, id, second)]).toEqual(['replaced', 'pending']);
    expect(home.run.deviceFlows.findByUserCode(first.userCode)?.device).toMatchObject({ userCode: second.userCode });
    expect(await home.run.deviceFlows.openLink(first.userCode)).toEqual({ kind: 'over' });
    await login(home, state);
    await home.time.pass(10 * SECOND);
    expect([poll(home, id, first), poll(home, id, second)]).toEqual(['replaced', 'paired']);
  });

  test('two simultaneous device flows of an appliance share one pairing, and one pair of codes is valid', async () => {
    const { home, id } = await added();
    await using _ = home;
    const flows = await Promise.all([begin(home), begin(home)]);
    expect(flows.map((flow) => poll(home, id, flow)).sort()).toEqual(['pending', 'replaced']);
    expect(await home.run.store.pairings()).toHaveLength(1);
  });
});

describe('new pairing during a code exchange', () => {
  test('an appliance that begins a device flow during a code exchange gets the grant', async () => {
    const { home, id } = await added(REDIRECT);
    await using _ = home;
    const { answer, landing } = await exchanging(home, await open(home, await begin(home)));
    const second = await begin(home);
    expect(poll(home, id, second)).toBe('pending');
    answer.resolve();
    expect((await landing)?.step).toMatchObject({ result: { kind: 'paired' } });
    await home.time.pass(5 * SECOND);
    expect(poll(home, id, second)).toBe('paired');
    expect(await home.whoami(await home.token(id))).toBe(200);
    await home.stop();
    await home.start();
    expect(poll(home, id, second)).toBe('paired');
  });

  test("codes that are being saved when the exchange's response arrives do not undo the pairing", async () => {
    const { home, id } = await added(REDIRECT);
    await using _ = home;
    const { answer, landing } = await exchanging(home, await open(home, await begin(home)));
    const disk = Promise.withResolvers<void>();
    home.delayedWrites.set('savePairing', disk.promise);
    const beginning = begin(home);
    answer.resolve();
    // Long enough for the answer to be taken; it would be written at once if nothing held it up.
    await new Promise((resolve) => setTimeout(resolve, 50));
    disk.resolve();
    home.delayedWrites.clear();
    const second = await beginning;
    await landing;
    await home.stop();
    await home.start();
    expect(poll(home, id, second)).toBe('paired');
  });

  test('an installer who pairs again during a code exchange does not lose its grant', async () => {
    const { home, id } = await added(REDIRECT);
    await using _ = home;
    const run = await home.beginPairing('wallbox');
    const { answer, landing } = await exchanging(home, newest(home, id));
    const again = home.run.pairings.begin(home.run.appliances.get('wallbox'));
    answer.resolve();
    await landing;
    await again;
    await home.time.settle();
    expect(pairingResult((await again).pairing.step)).toBe('waiting');
    expect(pairingResult(run.pairing.step)).toBe('paired');
    expect(await home.whoami(await home.token(id))).toBe(200);
  });

  test('a code exchange slower than the next pairing waits still brings the grant, unless it was unpaired', async () => {
    const { home, id } = await added(REDIRECT);
    await using _ = home;
    for (const unpaired of [false, true]) {
      const run = await home.beginPairing('wallbox');
      const { answer, landing } = await exchanging(home, newest(home, id));
      const waits = () => home.time.delays.filter((delay) => delay === PATIENCE).length;
      const before = waits();
      const again = home.run.pairings.begin(home.run.appliances.get('wallbox'));
      await expect.poll(waits).toBe(before + 1);
      home.time.skip(PATIENCE);
      expect((await again).pairing.id).not.toBe(run.pairing.id);
      expect(pairingResult(run.pairing.step)).toBe('exchanging');
      if (unpaired) await Promise.all([home.run.pairings.end(id, 'cancelled'), home.run.grants.delete(id)]);
      answer.resolve();
      await landing;
      await home.time.settle();
      expect(pairingResult(run.pairing.step)).toBe(unpaired ? 'cancelled' : 'paired');
      expect(await home.token(id)).toEqual(unpaired ? 'not_paired' : expect.stringMatching(/.{20}/));
    }
  });

  test('a refusal by redirect does not end a pairing whose code is being exchanged', async () => {
    const { home, id } = await added(REDIRECT);
    await using _ = home;
    const flow = await begin(home);
    const states = [await open(home, flow)];
    await home.time.pass(MINUTE);
    states.push(await open(home, flow));
    const refusal = await login(home, states[0] ?? '', true);
    const { answer, landing } = await exchanging(home, states[1] ?? '');
    const refused = follow(home, refusal);
    answer.resolve();
    await Promise.all([landing, refused]);
    expect(poll(home, id, flow)).toBe('paired');
  });
});

describe('restart with a shared pairing', () => {
  test.each(['stop', 'crash'] as const)(
    '(%s) a shared pairing keeps its link and all its codes after a restart',
    async (end) => {
      const { home, id } = await added();
      await using _ = home;
      await home.beginPairing('wallbox');
      const state = newest(home, id);
      const first = await begin(home);
      const second = await begin(home);
      await home[end]();
      await home.start();
      await home.time.settle();
      expect([poll(home, id, first), poll(home, id, second)]).toEqual(['replaced', 'pending']);
      await login(home, state);
      await home.time.pass(10 * SECOND);
      expect(poll(home, id, second)).toBe('paired');
      expect(home.portal.requests('config')).toHaveLength(1);
    },
  );

  test("a restart continues to request the installer's link and keeps the links that people opened", async () => {
    const { home, id } = await added();
    await using _ = home;
    const flow = await begin(home);
    const state = await open(home, flow);
    await home.portal.disconnect();
    await home.beginPairing('wallbox');
    await home.stop();
    await home.portal.reconnect();
    await home.start();
    await home.time.settle();
    expect(newest(home, id)).not.toBe(state);
    await login(home, state);
    await home.time.pass(10 * SECOND);
    expect(poll(home, id, flow)).toBe('paired');
  });
});
