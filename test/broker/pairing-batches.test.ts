import { describe, expect, it } from 'vitest';
import type { PairingRun } from '../../src/broker/pairings/pairing-run.ts';
import { Secret } from '../../src/core/secret.ts';
import { BrokerHarness, UNKNOWN_BROWSER } from './broker-harness.ts';

/** A broker with three unpaired appliances. The redirect URL contains the nonce. */
async function startHarness(): Promise<BrokerHarness> {
  const harness = await BrokerHarness.start({ redirect: (nonce) => `http://192.168.1.7:8480/callback/${nonce}` });
  for (const name of ['battery', 'heat-pump', 'wallbox']) await harness.addAppliance(name);
  return harness;
}

function currentOf(harness: BrokerHarness, batch: string): PairingRun {
  const { current } = harness.run.pairingBatches.view(batch);
  if (current === null) throw new Error('no pairing of the batch is open');
  return harness.run.pairings.get(current.pairing);
}

/** Begins a pairing batch. @returns its id */
async function beginBatch(harness: BrokerHarness): Promise<string> {
  const { id } = await harness.run.pairingBatches.begin();
  await harness.time.settle();
  return id;
}

/** A person logs in through the current link, and polling gets the code. */
async function logIn(harness: BrokerHarness, batch: string): Promise<void> {
  await harness.login(currentOf(harness, batch));
  await harness.time.pass(10_000);
}

/** A person logs in through the current link, and the browser brings the code. @returns the browser's batch token */
async function bringCode(harness: BrokerHarness, batch: string): Promise<string> {
  const run = currentOf(harness, batch);
  const code = new Secret(new URL(await harness.login(run)).searchParams.get('code') ?? '');
  const { nonce } = run.pairing;
  await Promise.all([
    harness.run.pairings.receive({ nonce, response: { kind: 'code', code } }, UNKNOWN_BROWSER),
    harness.time.settle(),
  ]);
  await harness.time.settle();
  const batchToken = harness.run.pairingBatches.forBrowser(nonce, code, null)?.batchToken?.reveal();
  if (batchToken === undefined) throw new Error('the browser got no batch token');
  return batchToken;
}

describe('pairing batch', () => {
  it('a pairing batch begins with the first appliance and continues after each one that gets connected', async () => {
    const harness = await startHarness();
    const batch = await beginBatch(harness);
    expect(harness.run.pairingBatches.view(batch)).toMatchObject({
      current: { connection: 'battery' },
      next: 'heat-pump',
      connected: [],
    });
    await logIn(harness, batch);
    expect(harness.run.pairingBatches.view(batch)).toMatchObject({
      current: { connection: 'heat-pump' },
      next: 'wallbox',
      connected: ['battery'],
    });
    await logIn(harness, batch);
    await logIn(harness, batch);
    expect(harness.run.pairingBatches.view(batch)).toEqual({
      id: batch,
      titles: { battery: 'battery', 'heat-pump': 'heat-pump', wallbox: 'wallbox' },
      current: null,
      next: null,
      connected: ['battery', 'heat-pump', 'wallbox'],
      connectedNow: 3,
      skipped: [],
      differentAccounts: [],
    });
  });

  it('all who begin a pairing batch share it, and simultaneous requests for the next appliance get one pairing', async () => {
    const harness = await startHarness();
    const { pairingBatches: batches } = harness.run;
    await harness.addAppliance('zone-valve');
    const [one, two] = await Promise.all([batches.begin(), batches.begin()]);
    expect(one).toEqual(two);
    await harness.time.settle();
    const batchToken = await bringCode(harness, one.id);
    const { nonce } = currentOf(harness, one.id).pairing;
    await currentOf(harness, one.id).fail('refused_by_user');
    const continueBatch = () => batches.continueInBrowser(nonce, false, batchToken);
    const links = await Promise.all([continueBatch(), continueBatch(), batches.next(one.id)]);
    expect(links[0]).toMatchObject({ kind: 'link' });
    expect(links[1]).toEqual(links[0]);
    expect(links[2].current?.connection).toBe('wallbox');
    expect(harness.run.pairings.filter(({ isOpen: open }) => open)).toHaveLength(1);
  });

  it('a pairing batch stops at a refused login until somebody continues with the next or the same appliance', async () => {
    const harness = await startHarness();
    const { pairingBatches: batches } = harness.run;
    await harness.addAppliance('zone-valve');
    const batch = await beginBatch(harness);
    const batchToken = await bringCode(harness, batch);
    const { nonce } = currentOf(harness, batch).pairing;
    await currentOf(harness, batch).fail('refused_by_user');
    await harness.time.pass(60_000);
    expect(batches.view(batch)).toMatchObject({ current: null, next: 'wallbox' });
    const again = () => batches.continueInBrowser(nonce, true, batchToken);
    const [one, two] = await Promise.all([again(), again()]);
    expect(one).toMatchObject({ kind: 'link' });
    expect(two).toEqual(one);
    expect(batches.view(batch).current?.connection).toBe('heat-pump');
    await logIn(harness, batch);
    await currentOf(harness, batch).fail('expired');
    await batches.next(batch);
    await harness.time.settle();
    await logIn(harness, batch);
    expect(batches.view(batch)).toMatchObject({
      current: null,
      next: null,
      connected: ['battery', 'heat-pump', 'zone-valve'],
      skipped: [{ name: 'wallbox', reason: 'expired' }],
    });
    // A batch counts what it has connected itself.
    expect(batches.view(batch).connectedNow).toBe(3);
    expect(await batches.begin()).toMatchObject({ current: { connection: 'wallbox' }, connectedNow: 0 });
  });

  it("a pairing batch shows each appliance's account if they differ, also after a refresh and a restart", async () => {
    const users = ['demo', 'guest'].map((name) => ({ name, password: name }));
    const harness = await BrokerHarness.start({ emulator: { users, idToken: true } });
    for (const name of ['battery', 'heat-pump', 'wallbox']) await harness.addAppliance(name);
    const batch = await beginBatch(harness);
    await logIn(harness, batch);
    expect(harness.run.pairingBatches.view(batch).differentAccounts).toEqual([]);
    await logIn(harness, batch);
    expect(harness.run.pairingBatches.view(batch).differentAccounts).toEqual([]);
    const { step } = currentOf(harness, batch).pairing;
    const state = step.kind === 'waiting' ? new URL(step.link.authorizeUrl).searchParams.get('state') : null;
    await harness.emulator.login({ state: state ?? '', user: 'guest' });
    await harness.time.pass(10_000);
    const accounts = [
      { connection: 'battery', account: 'demo' },
      { connection: 'heat-pump', account: 'demo' },
      { connection: 'wallbox', account: 'guest' },
    ];
    expect(harness.run.pairingBatches.view(batch).differentAccounts).toEqual(accounts);
    harness.emulator.change({ idToken: false });
    await harness.untilRefreshed();
    await harness.restart();
    expect(harness.run.pairingBatches.view(batch).differentAccounts).toEqual(accounts);
  });

  it('a pairing batch continues after a restart where it was', async () => {
    const harness = await startHarness();
    const batch = await beginBatch(harness);
    await logIn(harness, batch);
    await harness.restart();
    await harness.time.settle();
    expect(harness.run.pairingBatches.view(batch)).toMatchObject({
      current: { connection: 'heat-pump' },
      connected: ['battery'],
    });
    await logIn(harness, batch);
    expect(harness.run.pairingBatches.view(batch).current?.connection).toBe('wallbox');
    expect((await harness.run.pairingBatches.begin()).id).toBe(batch);
  });

  it('a pairing batch skips connected appliances and lists those that wait for approval', async () => {
    const harness = await startHarness();
    const { appliances, pairingBatches: batches } = harness.run;
    await harness.pairAgain('battery');
    const wallbox = appliances.get('wallbox');
    const waiting = { since: harness.time.now(), from: '192.168.1.20' };
    await harness.run.store.registry.save({ updatedAppliances: [{ ...wallbox, waiting }] });
    await harness.restart();
    const batch = await beginBatch(harness);
    expect(harness.run.pairingBatches.view(batch)).toMatchObject({
      current: { connection: 'heat-pump' },
      next: null,
      connected: ['battery'],
      skipped: [{ name: 'wallbox', pairing: null, reason: 'waiting_for_approval' }],
    });
    expect(batches).not.toBe(harness.run.pairingBatches);
  });

  it('a pairing batch is continued only with a nonce of its own pairings, and for at most an hour', async () => {
    const harness = await startHarness();
    const { pairingBatches: batches } = harness.run;
    const alone = await harness.beginPairing('wallbox');
    const batch = await beginBatch(harness);
    const { nonce } = currentOf(harness, batch).pairing;
    const batchToken = await bringCode(harness, batch);
    expect(await batches.continueInBrowser(alone.pairing.nonce, false, batchToken)).toEqual({ kind: 'over' });
    expect(await batches.continueInBrowser('made-up', false, batchToken)).toEqual({ kind: 'over' });
    expect(batches.forBrowser(nonce, null, batchToken)).toMatchObject({ id: batch, batch: { connected: ['battery'] } });
    expect(batches.forBrowser(alone.pairing.nonce, null, batchToken)).toBeNull();
    await harness.time.pass(2 * 3_600_000);
    expect(await batches.continueInBrowser(nonce, false, batchToken)).toEqual({ kind: 'over' });
    expect(batches.forBrowser(nonce, null, batchToken)).toBeNull();
    expect(harness.run.pairings.filter(({ isOpen: open }) => open)).toHaveLength(0);
  });

  it('a browser that knows the nonce but did not bring the accepted code cannot see or continue the batch', async () => {
    const harness = await startHarness();
    const { pairingBatches: batches } = harness.run;
    const batch = await beginBatch(harness);
    const first = currentOf(harness, batch);
    const { nonce } = first.pairing;
    const batchToken = await bringCode(harness, batch);
    const withoutAccess = { id: batch, batch: null, batchToken: null };
    for (const [code, browserToken] of [
      [null, null],
      [new Secret('another code'), null],
      [null, 'an unknown batch token'],
    ] as const)
      expect(batches.forBrowser(nonce, code, browserToken)).toEqual(withoutAccess);
    for (const again of [false, true]) {
      expect(await batches.continueInBrowser(nonce, again, null)).toEqual({ kind: 'not_proved', batch });
      expect(await batches.continueInBrowser(nonce, again, 'an unknown batch token')).toEqual({
        kind: 'not_proved',
        batch,
      });
    }
    const next = currentOf(harness, batch).pairing.nonce;
    expect(batches.forBrowser(next, new Secret('another code'), null)).toEqual(withoutAccess);
    expect(batches.forBrowser(next, null, batchToken)).toMatchObject({
      id: batch,
      batch: { id: batch },
      batchToken: null,
    });
    expect(await batches.continueInBrowser(next, false, batchToken)).toMatchObject({ kind: 'link' });
  });

  it('a browser that refuses every login can continue a pairing batch at most 30 times at once', async () => {
    const harness = await startHarness();
    const { pairingBatches: batches, pairings } = harness.run;
    const batch = await beginBatch(harness);
    const batchToken = await bringCode(harness, batch);
    let { nonce } = currentOf(harness, batch).pairing;
    let begun = 0;
    for (; begun < 100; begun++) {
      const browserToken = pairings.browserToken(currentOf(harness, batch).pairing.id).reveal();
      const from = { ...UNKNOWN_BROWSER, browserToken };
      await pairings.receive({ nonce, response: { kind: 'error', error: 'access_denied' } }, from);
      const [link] = await Promise.all([batches.continueInBrowser(nonce, true, batchToken), harness.time.settle()]);
      if (link.kind === 'over') break;
      nonce = pairings.find(({ isOpen: open }) => open)?.pairing.nonce ?? '';
    }
    expect(begun).toBe(30);
    expect(await batches.continueInBrowser(nonce, false, batchToken)).toEqual({ kind: 'over' });
    await harness.time.pass(20_000);
    const [link] = await Promise.all([batches.continueInBrowser(nonce, true, batchToken), harness.time.settle()]);
    expect(link.kind).toBe('link');
  });
});
