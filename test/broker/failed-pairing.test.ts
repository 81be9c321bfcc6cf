import { expect, test } from 'vitest';
import { DAY, MINUTE, SECOND } from '../core/samples.ts';
import { BrokerHarness } from './broker-harness.ts';

function failureOf(harness: BrokerHarness, name = 'wallbox') {
  const { state, pairingFailed } = harness.statusOf(name);
  return { state, reason: pairingFailed?.reason };
}

test('status shows why the last pairing failed for a day, also after a restart', async () => {
  const { harness } = await BrokerHarness.startUnpaired({ lifetime: MINUTE });
  await harness.beginPairing('wallbox');
  await harness.time.pass(MINUTE + SECOND);
  expect(failureOf(harness)).toEqual({ state: 'unpaired', reason: 'expired' });
  await harness.restart();
  expect(failureOf(harness)).toEqual({ state: 'unpaired', reason: 'expired' });
  await harness.time.pass(DAY - MINUTE);
  expect(failureOf(harness).reason).toBe('expired');
  await harness.time.pass(MINUTE + SECOND);
  expect(failureOf(harness).reason).toBeUndefined();
});

test('status reports no failure of a pairing that somebody cancelled', async () => {
  const { harness } = await BrokerHarness.startUnpaired({ lifetime: MINUTE });
  await harness.beginPairing('wallbox');
  await harness.time.pass(MINUTE + SECOND);
  await (await harness.beginPairing('wallbox')).fail('cancelled');
  expect(failureOf(harness)).toEqual({ state: 'unpaired', reason: undefined });
});

test('unpairing an appliance clears its failed pairings, also after a restart', async () => {
  const { harness } = await BrokerHarness.startUnpaired({ lifetime: MINUTE });
  for (const _ of [1, 2]) {
    await harness.beginPairing('wallbox');
    await harness.time.pass(MINUTE + SECOND);
  }
  expect(failureOf(harness).reason).toBe('expired');
  await harness.run.pairings.clearFailures(harness.run.appliances.get('wallbox').id);
  expect(failureOf(harness)).toEqual({ state: 'unpaired', reason: undefined });
  await harness.restart();
  expect(failureOf(harness)).toEqual({ state: 'unpaired', reason: undefined });
});

test('a new pairing replaces the failed one in status, and a device flow that nobody opens does not', async () => {
  const { harness, appliance } = await BrokerHarness.startUnpaired({ lifetime: MINUTE });
  await harness.beginPairing('wallbox');
  await harness.time.pass(MINUTE + SECOND);
  expect(failureOf(harness)).toEqual({ state: 'unpaired', reason: 'expired' });
  await harness.run.deviceFlows.begin(appliance, harness.connection(appliance.name), null);
  expect(failureOf(harness)).toEqual({ state: 'pairing', reason: undefined });
  await harness.time.pass(MINUTE + SECOND);
  expect(failureOf(harness)).toEqual({ state: 'unpaired', reason: 'expired' });
  await harness.beginPairing('wallbox');
  expect(failureOf(harness)).toEqual({ state: 'pairing', reason: undefined });
  await harness.time.pass(MINUTE + SECOND);
  expect(failureOf(harness).reason).toBe('expired');
});
