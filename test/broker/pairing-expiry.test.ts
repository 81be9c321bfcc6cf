import { expect, test } from 'vitest';
import type { PairingRun } from '../../src/broker/pairings/pairing-run.ts';
import { IS_LONG_FORM, selectRows } from '../support/long.ts';
import { BrokerHarness, pairingResult } from './broker-harness.ts';

const LIFETIME = 60_000;
/** Pairings of each of five kinds, in each of two passes: 200 in the long form. */
const PER_KIND = IS_LONG_FORM ? 20 : 2;
const DOWN = Array(10_000).fill({ kind: 'answer', status: 500 } as const);

test.each(selectRows([0, 20, 100, 300], [0, 300]))(
  'pairings of every kind expire with a store that takes %d ms a write, while the hub serves tokens',
  async (writeTime) => {
    const harness = await BrokerHarness.start({
      lifetime: LIFETIME,
      pollInterval: 10_000,
      writeTimes: [writeTime, writeTime],
      redirect: (nonce) => `http://192.168.1.7:8480/callback/${nonce}`,
    });
    const served = await harness.addPairedAppliance('served');
    for (let index = 0; index < PER_KIND; index++) {
      for (const kind of ['waiting', 'older', 'unopened', 'opened', 'asking'])
        await harness.addAppliance(`${kind}-${index}`);
    }
    const ended: string[] = [];
    for (let pass = 0; pass < 2; pass++) {
      const runs = await beginAll(harness);
      for (let second = 0; second < (2 * LIFETIME) / 1000 && runs.some(({ isOpen: open }) => open); second++) {
        await harness.time.pass(1000);
        expect(await harness.whoami(await harness.token(served))).toBe(200);
      }
      ended.push(...runs.map(({ pairing }) => pairingResult(pairing.step)));
    }
    expect(ended).toEqual(Array(2 * 5 * PER_KIND).fill('expired'));
    expect((await harness.run.store.pairings.all()).filter(({ step }) => step.kind !== 'ended')).toEqual([]);
  },
);

/** Begins pairings in every kind of step, without a login; one of the waiting ones is in a pairing batch. */
async function beginAll(harness: BrokerHarness): Promise<PairingRun[]> {
  const { pairings, deviceFlows, appliances, pairingBatches: batches } = harness.run;
  const names = (kind: string) => Array.from({ length: PER_KIND }, (_, index) => `${kind}-${index}`);
  const begin = (kind: string) => Promise.all(names(kind).map((name) => pairings.begin(harness.connection(name))));
  const beginFlow = (name: string) => deviceFlows.begin(appliances.get(name), harness.connection(name), null);
  harness.portal.clearFaults('config');
  const older = await begin('older');
  const waiting = await begin('waiting');
  await harness.time.settle();
  await Promise.all(older.map((run) => run.openLink()));
  await harness.time.pass(10_000);
  await Promise.all(older.map((run) => run.openLink()));
  for (const name of names('opened')) {
    const flow = await beginFlow(name);
    if (flow.kind === 'begun') await deviceFlows.openLink(flow.authorization.userCode);
  }
  for (const name of names('unopened')) await beginFlow(name);
  harness.portal.fail('config', ...DOWN);
  const asking = await begin('asking');
  const { id: batch } = await batches.begin();
  await harness.time.settle();
  const flows = [...names('opened'), ...names('unopened')].flatMap(
    (name) => pairings.newestFor(appliances.get(name).id) ?? [],
  );
  const stepsOf = (runs: PairingRun[]) => new Set(runs.map(({ pairing: { step } }) => step.kind));
  expect(stepsOf(waiting)).toEqual(new Set(['waiting']));
  expect(stepsOf(asking)).toEqual(new Set(['asking']));
  expect(older.every(({ pairing: { step } }) => step.kind === 'waiting' && step.earlier !== undefined)).toBe(true);
  expect(batches.view(batch).current).not.toBeNull();
  return [...older, ...waiting, ...flows, ...asking];
}
