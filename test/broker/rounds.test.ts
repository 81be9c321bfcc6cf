import { describe, expect, it } from 'vitest';
import type { PairingRun } from '../../src/broker/pairings/pairing-run.ts';
import { Secret } from '../../src/core/secret.ts';
import { BrokerHarness, pairingResult, UNKNOWN_BROWSER } from './broker-harness.ts';

/** A home with three appliances, none of them paired. The nonce is in the address that the portal is given. */
async function household(): Promise<BrokerHarness> {
  const home = await BrokerHarness.start({ redirect: (nonce) => `http://192.168.1.7:8480/callback/${nonce}` });
  for (const name of ['battery', 'heat-pump', 'wallbox']) await home.addAppliance(name);
  return home;
}

function currentOf(home: BrokerHarness, round: string): PairingRun {
  const { current } = home.run.pairingBatches.view(round);
  if (current === null) throw new Error('no pairing of the round is open');
  return home.run.pairings.get(current.pairing);
}

/** Begins a round. @returns its id */
async function begin(home: BrokerHarness): Promise<string> {
  const { id } = await home.run.pairingBatches.begin();
  await home.time.settle();
  return id;
}

/** Somebody logs in through the link at hand, and polling brings the code. */
async function logIn(home: BrokerHarness, round: string): Promise<void> {
  await home.login(currentOf(home, round));
  await home.time.pass(10_000);
}

/** Somebody logs in through the link at hand, and their browser brings the code. @returns the pass that it gets */
async function bringCode(home: BrokerHarness, round: string): Promise<string> {
  const run = currentOf(home, round);
  const code = new Secret(new URL(await home.login(run)).searchParams.get('code') ?? '');
  const { nonce } = run.pairing;
  await Promise.all([
    home.run.pairings.receiveCallback(nonce, { kind: 'code', code }, UNKNOWN_BROWSER),
    home.time.settle(),
  ]);
  await home.time.settle();
  const pass = home.run.pairingBatches.forBrowser(nonce, code, null)?.batchToken?.reveal();
  if (pass === undefined) throw new Error('the browser got no pass');
  return pass;
}

describe('pairing batch', () => {
  it('a pairing batch begins with the first appliance and continues after each one that gets connected', async () => {
    await using home = await household();
    const round = await begin(home);
    expect(home.run.pairingBatches.view(round)).toMatchObject({
      current: { appliance: 'battery' },
      next: 'heat-pump',
      connected: [],
    });
    await logIn(home, round);
    expect(home.run.pairingBatches.view(round)).toMatchObject({
      current: { appliance: 'heat-pump' },
      next: 'wallbox',
      connected: ['battery'],
    });
    await logIn(home, round);
    await logIn(home, round);
    expect(home.run.pairingBatches.view(round)).toEqual({
      id: round,
      current: null,
      next: null,
      connected: ['battery', 'heat-pump', 'wallbox'],
      skipped: [],
      differentAccounts: [],
    });
  });

  it('all who begin a pairing batch share it, and simultaneous requests for the next appliance get one pairing', async () => {
    await using home = await household();
    const { pairingBatches: rounds } = home.run;
    await home.addAppliance('zone-valve');
    const [one, two] = await Promise.all([rounds.begin(), rounds.begin()]);
    expect(one).toEqual(two);
    await home.time.settle();
    const pass = await bringCode(home, one.id);
    const { nonce } = currentOf(home, one.id).pairing;
    await currentOf(home, one.id).fail('refused_by_user');
    const goOn = () => rounds.continueInBrowser(nonce, false, pass);
    const links = await Promise.all([goOn(), goOn(), rounds.next(one.id)]);
    expect(links[0]).toMatchObject({ kind: 'link' });
    expect(links[1]).toEqual(links[0]);
    expect(links[2].current?.appliance).toBe('wallbox');
    expect(home.run.pairings.filter(({ isOpen: open }) => open)).toHaveLength(1);
  });

  it('a pairing batch stops at a refused login until somebody continues with the next or the same appliance', async () => {
    await using home = await household();
    const { pairingBatches: rounds } = home.run;
    await home.addAppliance('zone-valve');
    const round = await begin(home);
    const pass = await bringCode(home, round);
    const { nonce } = currentOf(home, round).pairing;
    await currentOf(home, round).fail('refused_by_user');
    await home.time.pass(60_000);
    expect(rounds.view(round)).toMatchObject({ current: null, next: 'wallbox' });
    const again = () => rounds.continueInBrowser(nonce, true, pass);
    const [one, two] = await Promise.all([again(), again()]);
    expect(one).toMatchObject({ kind: 'link' });
    expect(two).toEqual(one);
    expect(rounds.view(round).current?.appliance).toBe('heat-pump');
    await logIn(home, round);
    await currentOf(home, round).fail('expired');
    await rounds.next(round);
    await home.time.settle();
    await logIn(home, round);
    expect(rounds.view(round)).toMatchObject({
      current: null,
      next: null,
      connected: ['battery', 'heat-pump', 'zone-valve'],
      skipped: [{ name: 'wallbox', reason: 'expired' }],
    });
    expect((await rounds.begin()).current?.appliance).toBe('wallbox');
  });

  it("a pairing batch shows each appliance's account if they differ, also after a refresh and a restart", async () => {
    const users = ['demo', 'guest'].map((name) => ({ name, password: name }));
    await using home = await BrokerHarness.start({ emulator: { users, idToken: true } });
    for (const name of ['battery', 'heat-pump', 'wallbox']) await home.addAppliance(name);
    const round = await begin(home);
    await logIn(home, round);
    expect(home.run.pairingBatches.view(round).differentAccounts).toEqual([]);
    await logIn(home, round);
    expect(home.run.pairingBatches.view(round).differentAccounts).toEqual([]);
    const { step } = currentOf(home, round).pairing;
    const state = step.kind === 'waiting' ? new URL(step.link.authorizeUrl).searchParams.get('state') : null;
    await home.emulator.login({ state: state ?? '', user: 'guest' });
    await home.time.pass(10_000);
    const accounts = [
      { appliance: 'battery', account: 'demo' },
      { appliance: 'heat-pump', account: 'demo' },
      { appliance: 'wallbox', account: 'guest' },
    ];
    expect(home.run.pairingBatches.view(round).differentAccounts).toEqual(accounts);
    home.emulator.change({ idToken: false });
    await home.untilRefreshed();
    await home.stop();
    await home.start();
    expect(home.run.pairingBatches.view(round).differentAccounts).toEqual(accounts);
  });

  it('a pairing batch continues after a restart where it was', async () => {
    await using home = await household();
    const round = await begin(home);
    await logIn(home, round);
    await home.stop();
    await home.start();
    await home.time.settle();
    expect(home.run.pairingBatches.view(round)).toMatchObject({
      current: { appliance: 'heat-pump' },
      connected: ['battery'],
    });
    await logIn(home, round);
    expect(home.run.pairingBatches.view(round).current?.appliance).toBe('wallbox');
    expect((await home.run.pairingBatches.begin()).id).toBe(round);
  });

  it('a pairing batch adopts an open pairing and keeps its link', async () => {
    await using home = await household();
    const run = await home.beginPairing('battery');
    const { step } = run.pairing;
    const round = await begin(home);
    expect(currentOf(home, round)).toBe(run);
    expect(run.pairing.step).toEqual(step);
    await logIn(home, round);
    expect(pairingResult(run.pairing.step)).toBe('paired');
    expect(home.run.pairingBatches.view(round).current?.appliance).toBe('heat-pump');
  });

  it('a pairing batch skips connected appliances and lists those that wait for approval', async () => {
    await using home = await household();
    const { appliances, pairingBatches: rounds } = home.run;
    await home.pairAgain('battery');
    const wallbox = appliances.get('wallbox');
    await home.run.store.updateAppliance({ ...wallbox, waitingSince: home.time.now() });
    await home.stop();
    await home.start();
    const round = await begin(home);
    expect(home.run.pairingBatches.view(round)).toMatchObject({
      current: { appliance: 'heat-pump' },
      next: null,
      connected: ['battery'],
      skipped: [{ name: 'wallbox', pairing: null, reason: 'waiting_for_approval' }],
    });
    expect(rounds).not.toBe(home.run.pairingBatches);
  });

  it('a pairing batch is continued only with a nonce of its own pairings, and for at most an hour', async () => {
    await using home = await household();
    const { pairingBatches: rounds } = home.run;
    const alone = await home.beginPairing('wallbox');
    const round = await begin(home);
    const { nonce } = currentOf(home, round).pairing;
    const pass = await bringCode(home, round);
    expect(await rounds.continueInBrowser(alone.pairing.nonce, false, pass)).toEqual({ kind: 'over' });
    expect(await rounds.continueInBrowser('made-up', false, pass)).toEqual({ kind: 'over' });
    expect(rounds.forBrowser(nonce, null, pass)).toMatchObject({ id: round, batch: { connected: ['battery'] } });
    expect(rounds.forBrowser(alone.pairing.nonce, null, pass)).toBeNull();
    await home.time.pass(2 * 3_600_000);
    expect(await rounds.continueInBrowser(nonce, false, pass)).toEqual({ kind: 'over' });
    expect(rounds.forBrowser(nonce, null, pass)).toBeNull();
    expect(home.run.pairings.filter(({ isOpen: open }) => open)).toHaveLength(0);
  });

  it('a browser that knows the nonce but did not bring the accepted code cannot see or continue the batch', async () => {
    await using home = await household();
    const { pairingBatches: rounds } = home.run;
    const round = await begin(home);
    const first = currentOf(home, round);
    const { nonce } = first.pairing;
    const pass = await bringCode(home, round);
    const stranger = { id: round, batch: null, batchToken: null };
    for (const [code, its] of [
      [null, null],
      [new Secret('another code'), null],
      [null, 'a pass of nobody'],
    ] as const)
      expect(rounds.forBrowser(nonce, code, its)).toEqual(stranger);
    for (const again of [false, true]) {
      expect(await rounds.continueInBrowser(nonce, again, null)).toEqual({ kind: 'not_proved', batch: round });
      expect(await rounds.continueInBrowser(nonce, again, 'a pass of nobody')).toEqual({
        kind: 'not_proved',
        batch: round,
      });
    }
    const next = currentOf(home, round).pairing.nonce;
    expect(rounds.forBrowser(next, new Secret('another code'), null)).toEqual(stranger);
    expect(rounds.forBrowser(next, null, pass)).toMatchObject({ id: round, batch: { id: round }, batchToken: null });
    expect(await rounds.continueInBrowser(next, false, pass)).toMatchObject({ kind: 'link' });
  });

  it('a browser that refuses every login can continue a pairing batch at most 30 times at once', async () => {
    await using home = await household();
    const { pairingBatches: rounds, pairings } = home.run;
    const round = await begin(home);
    const pass = await bringCode(home, round);
    let { nonce } = currentOf(home, round).pairing;
    let begun = 0;
    for (; begun < 100; begun++) {
      await pairings.receiveCallback(nonce, { kind: 'error', error: 'access_denied' }, UNKNOWN_BROWSER);
      const [link] = await Promise.all([rounds.continueInBrowser(nonce, true, pass), home.time.settle()]);
      if (link.kind === 'over') break;
      nonce = pairings.find(({ isOpen: open }) => open)?.pairing.nonce ?? '';
    }
    expect(begun).toBe(30);
    expect(await rounds.continueInBrowser(nonce, false, pass)).toEqual({ kind: 'over' });
    await home.time.pass(20_000);
    const [link] = await Promise.all([rounds.continueInBrowser(nonce, true, pass), home.time.settle()]);
    expect(link.kind).toBe('link');
  });

  it('continuing a pairing batch reports an unreachable portal, and returns the link once it is reachable', async () => {
    await using home = await household();
    const { pairingBatches: rounds } = home.run;
    const round = await begin(home);
    const pass = await bringCode(home, round);
    const { nonce } = currentOf(home, round).pairing;
    await currentOf(home, round).fail('refused_by_user');
    const fault = home.emulator.addFault({ kind: 'status', status: 503, endpoint: 'config', times: null });
    expect(await rounds.continueInBrowser(nonce, false, pass)).toEqual({ kind: 'unreachable', appliance: 'wallbox' });
    await home.emulator.removeFault(fault.id);
    await home.time.pass(30_000);
    expect(await rounds.continueInBrowser(nonce, false, pass)).toMatchObject({ kind: 'link' });
  });
});
