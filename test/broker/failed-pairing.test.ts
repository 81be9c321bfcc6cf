import { expect, test } from 'vitest';
import { applianceStatus } from '../../src/broker/appliances/appliance-status.ts';
import { DAY, MINUTE, SECOND } from '../core/samples.ts';
import { BrokerHarness } from './broker-harness.ts';

function failureOf(home: BrokerHarness, name = 'wallbox') {
  const appliance = home.run.appliances.get(name);
  const { state, pairingFailed } = applianceStatus(appliance, home.run, () => '');
  return { state, reason: pairingFailed?.reason };
}

test('status shows why the last pairing failed for a day, also after a restart', async () => {
  await using home = await BrokerHarness.start();
  await home.addAppliance('wallbox');
  await home.beginPairing('wallbox');
  await home.time.pass(15 * MINUTE + SECOND);
  expect(failureOf(home)).toEqual({ state: 'unpaired', reason: 'expired' });
  await home.stop();
  await home.start();
  expect(failureOf(home)).toEqual({ state: 'unpaired', reason: 'expired' });
  await home.time.pass(DAY - MINUTE);
  expect(failureOf(home).reason).toBe('expired');
  await home.time.pass(MINUTE + SECOND);
  expect(failureOf(home).reason).toBeUndefined();
});

test('a pairing failure that the configuration caused is shown until the hub is restarted', async () => {
  await using home = await BrokerHarness.start();
  await home.addAppliance('wallbox');
  await home.beginPairing('wallbox');
  await home.time.pass(15 * MINUTE + SECOND);
  home.portal.fail('config', { kind: 'answer', status: 404 });
  await home.beginPairing('wallbox');
  await home.time.pass(MINUTE);
  expect(failureOf(home)).toEqual({ state: 'unpaired', reason: 'client_unknown' });
  await home.stop();
  await home.start();
  expect(failureOf(home)).toEqual({ state: 'unpaired', reason: undefined });
});

test('unpairing an appliance clears its failed pairings, also after a restart', async () => {
  await using home = await BrokerHarness.start();
  await home.addAppliance('wallbox');
  for (const _ of [1, 2]) {
    await home.beginPairing('wallbox');
    await home.time.pass(15 * MINUTE + SECOND);
  }
  expect(failureOf(home).reason).toBe('expired');
  await home.run.pairings.clearFailures(home.run.appliances.get('wallbox').id);
  expect(failureOf(home)).toEqual({ state: 'unpaired', reason: undefined });
  await home.stop();
  await home.start();
  expect(failureOf(home)).toEqual({ state: 'unpaired', reason: undefined });
});

test('a new pairing replaces the failed one in status, and a device flow that nobody opens does not', async () => {
  await using home = await BrokerHarness.start();
  const { appliance } = await home.addAppliance('wallbox');
  await home.beginPairing('wallbox');
  await home.time.pass(15 * MINUTE + SECOND);
  expect(failureOf(home)).toEqual({ state: 'unpaired', reason: 'expired' });
  await home.run.deviceFlows.begin(appliance, null);
  expect(failureOf(home)).toEqual({ state: 'pairing', reason: undefined });
  await home.time.pass(15 * MINUTE + SECOND);
  expect(failureOf(home)).toEqual({ state: 'unpaired', reason: 'expired' });
  await home.beginPairing('wallbox');
  expect(failureOf(home)).toEqual({ state: 'pairing', reason: undefined });
  await home.time.pass(15 * MINUTE + SECOND);
  expect(failureOf(home).reason).toBe('expired');
});
