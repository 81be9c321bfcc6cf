import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, test } from 'vitest';
import { BrokerHarness } from '../broker/broker-harness.ts';

/** A pairing whose link has arrived from the portal and is being written to the disk. */
async function linkUnderWay(home: BrokerHarness) {
  const { appliance } = await home.addAppliance('wallbox');
  const disk = Promise.withResolvers<void>();
  const run = await home.run.pairings.begin(home.connection('wallbox'));
  home.delayedWrites.set('pairings.save', disk.promise);
  await expect.poll(() => home.emulator.requests.filter(({ status }) => status === 200)).toHaveLength(1);
  await sleep(100);
  return { appliance, run, written: () => disk.resolve() };
}

describe('saving a pairing link', () => {
  test('a pairing link is shown only after it was saved, so a power cut does not lose a link that was shown', async () => {
    await using home = await BrokerHarness.start();
    const { run, written } = await linkUnderWay(home);
    expect(run.pairing.step.kind).toBe('asking');
    written();
    await home.time.settle();
    expect(run.pairing.step.kind).toBe('waiting');
    expect(await home.run.store.pairings.all()).toMatchObject([{ step: { kind: 'waiting' } }]);
  });

  test('a link that arrives while its pairing is being cancelled is discarded', async () => {
    await using home = await BrokerHarness.start();
    const { appliance, run, written } = await linkUnderWay(home);
    const ended = home.run.pairings.end(appliance.id);
    written();
    await ended;
    await home.time.settle();
    const cancelled = { kind: 'ended', result: { kind: 'failed', reason: 'cancelled' } };
    expect(run.pairing.step).toEqual(cancelled);
    expect(await home.run.store.pairings.all()).toMatchObject([{ step: cancelled }]);
  });
});
