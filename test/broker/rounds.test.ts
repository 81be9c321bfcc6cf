import { describe, expect, it } from 'vitest';
import type { PairingRun } from '../../src/broker/pairing-run.ts';
import { Home, resultOf } from './home.ts';

/** A home with three appliances, none of them paired. The nonce is in the address that the portal is given. */
async function household(): Promise<Home> {
  const home = await Home.start({ redirect: (nonce) => `http://192.168.1.7:8480/callback/${nonce}` });
  for (const name of ['battery', 'heat-pump', 'wallbox']) await home.add(name);
  return home;
}

function currentOf(home: Home, round: string): PairingRun {
  const { current } = home.run.rounds.view(round);
  if (current === null) throw new Error('no pairing of the round is open');
  return home.run.pairings.get(current.pairing);
}

/** Begins a round. @returns its id */
async function begin(home: Home): Promise<string> {
  const { id } = await home.run.rounds.begin();
  await home.time.settle();
  return id;
}

/** Somebody logs in through the link at hand, and polling brings the code. */
async function logIn(home: Home, round: string): Promise<void> {
  await home.login(currentOf(home, round));
  await home.time.pass(10_000);
}

describe('a round', () => {
  it('begins with the first appliance, and goes on by itself when that is connected', async () => {
    await using home = await household();
    const round = await begin(home);
    expect(home.run.rounds.view(round)).toMatchObject({
      current: { appliance: 'battery' },
      next: 'heat-pump',
      connected: [],
    });
    await logIn(home, round);
    expect(home.run.rounds.view(round)).toMatchObject({
      current: { appliance: 'heat-pump' },
      next: 'wallbox',
      connected: ['battery'],
    });
    await logIn(home, round);
    await logIn(home, round);
    expect(home.run.rounds.view(round)).toEqual({
      id: round,
      current: null,
      next: null,
      connected: ['battery', 'heat-pump', 'wallbox'],
      leftOut: [],
    });
  });

  it('is one for all who begin it, and two who go on at the same time get the same pairing', async () => {
    await using home = await household();
    const { rounds } = home.run;
    const [one, two] = await Promise.all([rounds.begin(), rounds.begin()]);
    expect(one).toEqual(two);
    const { nonce } = currentOf(home, one.id).pairing;
    await home.time.settle();
    await currentOf(home, one.id).fail('refused_by_user');
    const links = await Promise.all([rounds.goOn(nonce, false), rounds.goOn(nonce, false), rounds.next(one.id)]);
    expect(links[0]).toMatchObject({ kind: 'link' });
    expect(links[1]).toEqual(links[0]);
    expect(links[2].current?.appliance).toBe('heat-pump');
    expect(home.run.pairings.all(({ open }) => open)).toHaveLength(1);
  });

  it('stops at a refusal until somebody says how to go on: the next, or the same once more', async () => {
    await using home = await household();
    const { rounds } = home.run;
    const round = await begin(home);
    const { nonce } = currentOf(home, round).pairing;
    await currentOf(home, round).fail('refused_by_user');
    await home.time.pass(60_000);
    expect(rounds.view(round)).toMatchObject({ current: null, next: 'heat-pump' });
    const [one, two] = await Promise.all([rounds.goOn(nonce, true), rounds.goOn(nonce, true)]);
    expect(one).toMatchObject({ kind: 'link' });
    expect(two).toEqual(one);
    expect(rounds.view(round).current?.appliance).toBe('battery');
    await logIn(home, round);
    await currentOf(home, round).fail('expired');
    await rounds.next(round);
    await home.time.settle();
    await logIn(home, round);
    expect(rounds.view(round)).toMatchObject({
      current: null,
      next: null,
      connected: ['battery', 'wallbox'],
      leftOut: [{ name: 'heat-pump', reason: 'expired' }],
    });
    expect((await rounds.begin()).current?.appliance).toBe('heat-pump');
  });

  it('goes on after a restart, where it was', async () => {
    await using home = await household();
    const round = await begin(home);
    await logIn(home, round);
    await home.stop();
    await home.start();
    await home.time.settle();
    expect(home.run.rounds.view(round)).toMatchObject({
      current: { appliance: 'heat-pump' },
      connected: ['battery'],
    });
    await logIn(home, round);
    expect(home.run.rounds.view(round).current?.appliance).toBe('wallbox');
    expect((await home.run.rounds.begin()).id).toBe(round);
  });

  it('takes a pairing along that is under way, and leaves its link as it is', async () => {
    await using home = await household();
    const run = await home.begin('battery');
    const { step } = run.pairing;
    const round = await begin(home);
    expect(currentOf(home, round)).toBe(run);
    expect(run.pairing.step).toEqual(step);
    await logIn(home, round);
    expect(resultOf(run.pairing.step)).toBe('paired');
    expect(home.run.rounds.view(round).current?.appliance).toBe('heat-pump');
  });

  it('leaves alone who is connected, and says who waits for approval', async () => {
    await using home = await household();
    const { appliances, rounds } = home.run;
    await home.pairAgain('battery');
    const wallbox = appliances.named('wallbox');
    await home.run.store.changeAppliance({ ...wallbox, waitingSince: home.time.now() });
    await home.stop();
    await home.start();
    const round = await begin(home);
    expect(home.run.rounds.view(round)).toMatchObject({
      current: { appliance: 'heat-pump' },
      next: null,
      connected: ['battery'],
      leftOut: [{ name: 'wallbox', pairing: null, reason: 'waiting_for_approval' }],
    });
    expect(rounds).not.toBe(home.run.rounds);
  });

  it('is gone on with by the nonce of its own pairings alone, and for an hour at most', async () => {
    await using home = await household();
    const { rounds } = home.run;
    const alone = await home.begin('wallbox');
    expect(await rounds.goOn(alone.pairing.nonce, false)).toEqual({ kind: 'over' });
    expect(await rounds.goOn('made-up', false)).toEqual({ kind: 'over' });
    const round = await begin(home);
    const { nonce } = currentOf(home, round).pairing;
    expect(rounds.ofNonce(nonce)?.id).toBe(round);
    expect(rounds.ofNonce(alone.pairing.nonce)).toBeNull();
    await home.time.pass(2 * 3_600_000);
    expect(await rounds.goOn(nonce, false)).toEqual({ kind: 'over' });
    expect(rounds.ofNonce(nonce)).toBeNull();
    expect(home.run.pairings.all(({ open }) => open)).toHaveLength(0);
  });

  it('is not begun again and again by whoever holds a nonce and refuses each login', async () => {
    await using home = await household();
    const { rounds, pairings } = home.run;
    let { nonce } = currentOf(home, await begin(home)).pairing;
    let begun = 0;
    for (; begun < 100; begun++) {
      await pairings.receive(nonce, { kind: 'error', error: 'access_denied' });
      const [link] = await Promise.all([rounds.goOn(nonce, true), home.time.settle()]);
      if (link.kind === 'over') break;
      nonce = pairings.find(({ open }) => open)?.pairing.nonce ?? '';
    }
    expect(begun).toBe(30);
    expect(await rounds.goOn(nonce, false)).toEqual({ kind: 'over' });
    await home.time.pass(20_000);
    const [link] = await Promise.all([rounds.goOn(nonce, true), home.time.settle()]);
    expect(link.kind).toBe('link');
  });

  it('tells whoever goes on that the portal is out of reach, and gives the link when it is there', async () => {
    await using home = await household();
    const { rounds } = home.run;
    const round = await begin(home);
    const { nonce } = currentOf(home, round).pairing;
    await currentOf(home, round).fail('refused_by_user');
    const fault = home.emulator.addFault({ kind: 'status', status: 503, endpoint: 'config', times: null });
    expect(await rounds.goOn(nonce, false)).toEqual({ kind: 'unreachable', appliance: 'heat-pump' });
    await home.emulator.removeFault(fault.id);
    await home.time.pass(30_000);
    expect(await rounds.goOn(nonce, false)).toMatchObject({ kind: 'link' });
  });
});
