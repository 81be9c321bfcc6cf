import { expect, test } from 'vitest';
import type { PairingContext } from '../../src/broker/pairings/pairing-context.ts';
import type { PairingRun } from '../../src/broker/pairings/pairing-run.ts';
import { PairingStateMachine } from '../../src/broker/pairings/pairing-state-machine.ts';
import { IS_LONG_FORM, selectRows } from '../support/long.ts';
import { BrokerHarness, pairingResult } from './broker-harness.ts';

const LIFETIME = 60_000;
/** Of each of five kinds, in each of two goes: two hundred in the long form. */
const EACH = IS_LONG_FORM ? 20 : 2;
/** What a loop waits that is held up; and one that asks the portal once more, the first time. */
const HELD_UP_MS = 1000;
const DOWN = Array(10_000).fill({ kind: 'answer', status: 500 } as const);

test.each(selectRows([0, 20, 100, 300], [0, 300]))(
  'pairings of every kind expire with a store that takes %d ms a write, while the hub serves tokens',
  async (writeTime) => {
    await using home = await BrokerHarness.start({
      lifetime: LIFETIME,
      pollInterval: 10_000,
      writeTimes: [writeTime, writeTime],
      redirect: (nonce) => `http://192.168.1.7:8480/callback/${nonce}`,
    });
    const served = await home.addPairedAppliance('served');
    for (let index = 0; index < EACH; index++) {
      for (const kind of ['waiting', 'older', 'unopened', 'opened', 'asking'])
        await home.addAppliance(`${kind}-${index}`);
    }
    const ended: string[] = [];
    for (let go = 0; go < 2; go++) {
      const runs = await beginAll(home);
      for (let second = 0; second < (2 * LIFETIME) / 1000 && runs.some(({ isOpen: open }) => open); second++) {
        await home.time.pass(1000);
        expect(await home.whoami(await home.token(served))).toBe(200);
      }
      ended.push(...runs.map(({ pairing }) => pairingResult(pairing.step)));
    }
    expect(ended).toEqual(Array(2 * 5 * EACH).fill('expired'));
    expect(home.time.delays.filter((delay) => delay === HELD_UP_MS)).toHaveLength(2 * EACH);
    expect((await home.run.store.pairings()).filter(({ step }) => step.kind !== 'ended')).toEqual([]);
  },
);

test('the spin guard slows down a loop whose waits all end at once', async () => {
  await using home = await BrokerHarness.start();
  await home.addAppliance('wallbox');
  const { pairing } = await home.beginPairing('wallbox');
  const progress = new PairingStateMachine({ environment: home.environment } as PairingContext, pairing);
  let turns = 0;
  const loop = (async () => {
    for (; turns < 1000; turns++) await progress.guardAgainstSpin(progress.signal);
  })();
  await home.time.settle();
  expect(turns).toBeLessThan(150);
  await home.time.pass(1000);
  expect(turns).toBeLessThan(300);
  progress.stop();
  await loop;
});

/** Pairings in every kind of step, with nobody who logs in; one of those that wait is part of a round. */
async function beginAll(home: BrokerHarness): Promise<PairingRun[]> {
  const { pairings, deviceFlows, appliances, pairingBatches: rounds } = home.run;
  const names = (kind: string) => Array.from({ length: EACH }, (_, index) => `${kind}-${index}`);
  const begin = (kind: string) => Promise.all(names(kind).map((name) => pairings.begin(appliances.get(name))));
  const beginFlow = (name: string) => deviceFlows.begin(appliances.get(name), null);
  home.portal.clearFaults('config');
  const older = await begin('older');
  const waiting = await begin('waiting');
  await home.time.settle();
  await Promise.all(older.map((run) => run.openLink()));
  await home.time.pass(10_000);
  await Promise.all(older.map((run) => run.openLink()));
  for (const name of names('opened')) {
    const flow = await beginFlow(name);
    if (flow.kind === 'begun') await deviceFlows.openLink(flow.authorization.userCode);
  }
  for (const name of names('unopened')) await beginFlow(name);
  home.portal.fail('config', ...DOWN);
  const asking = await begin('asking');
  const { id: round } = await rounds.begin();
  await home.time.settle();
  const flows = [...names('opened'), ...names('unopened')].flatMap(
    (name) => pairings.newestFor(appliances.get(name).id) ?? [],
  );
  const stepsOf = (runs: PairingRun[]) => new Set(runs.map(({ pairing: { step } }) => step.kind));
  expect(stepsOf(waiting)).toEqual(new Set(['waiting']));
  expect(stepsOf(asking)).toEqual(new Set(['asking']));
  expect(older.every(({ pairing: { step } }) => step.kind === 'waiting' && step.earlier !== undefined)).toBe(true);
  expect(rounds.view(round).current).not.toBeNull();
  return [...older, ...waiting, ...flows, ...asking];
}
