import { expect, test } from 'vitest';
import { HOUR, MINUTE, SECOND } from '../core/samples.ts';
import { BrokerHarness } from './broker-harness.ts';

/** A broker whose portal has been unreachable for so long that the backoff is at its maximum. */
async function startUnreachable() {
  const harness = await BrokerHarness.start({ fraction: 0.999 });
  const ids = [await harness.addPairedAppliance('wallbox'), await harness.addPairedAppliance('heater')];
  await harness.portal.disconnect();
  await harness.time.pass(HOUR);
  return { harness, ids };
}

const states = (harness: BrokerHarness, ids: readonly string[]) =>
  ids.map((id) => harness.run.grants.get(id)?.health.kind);

test('failed refreshes are sent again within seconds when the hub gets an address', async () => {
  const { harness, ids } = await startUnreachable();
  expect(states(harness, ids)).toEqual(['failing', 'failing']);
  await harness.portal.reconnect();
  harness.run.grants.onNetworkChanged();
  await harness.time.pass(5 * SECOND);
  expect(states(harness, ids)).toEqual(['good', 'good']);
});

test('a network that comes and goes all the time causes fewer than six refresh attempts a minute', async () => {
  const { harness } = await startUnreachable();
  const before = harness.refreshAttempts;
  for (let passed = 0; passed < 10 * MINUTE; passed += 6 * SECOND) {
    harness.run.grants.onNetworkChanged();
    await harness.time.pass(6 * SECOND);
  }
  // For each grant and change of the network: one attempt at once, then backoff until the next change.
  expect((harness.refreshAttempts - before) / 2).toBeLessThan(6 * 10);
  expect((harness.refreshAttempts - before) / 2).toBeGreaterThan(10);
});
