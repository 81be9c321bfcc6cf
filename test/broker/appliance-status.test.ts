import { expect, test } from 'vitest';
import { HOUR, MINUTE } from '../core/samples.ts';
import { BrokerHarness } from './broker-harness.ts';
import { requestToken } from './broker-services.ts';

function statusOf(harness: BrokerHarness) {
  return harness.statusOf('wallbox');
}

/** The minutes since the last refresh by the hub's own clock; null if the status has no last refresh. */
function refreshedAgo(harness: BrokerHarness): number | null {
  const { lastRefresh } = statusOf(harness);
  return lastRefresh === null ? null : (harness.time.wall - Date.parse(lastRefresh)) / MINUTE;
}

test("the last refresh of an appliance lies in the past by a hub clock that is behind the portal's clock", async () => {
  const portal = { wall: Date.UTC(2031, 4, 5, 8, 30) };
  const { harness } = await BrokerHarness.startPaired({ emulator: { clock: { now: () => portal } } });
  const [grant] = await harness.run.store.grants.all();
  expect(grant?.grant.portalTime).toBeGreaterThan(harness.time.wall + HOUR);
  await harness.time.pass(20 * MINUTE);
  expect(refreshedAgo(harness)).toBeCloseTo(20, 0);
});

test("the last token of an appliance lies in the past by a hub clock that is behind the portal's clock", async () => {
  const portal = { wall: Date.UTC(2031, 4, 6, 8, 30) };
  const { harness } = await BrokerHarness.startPaired({ emulator: { clock: { now: () => portal } } });
  await requestToken(harness, 'wallbox');
  await harness.time.pass(20 * MINUTE);
  const { lastToken } = statusOf(harness);
  expect((harness.time.wall - Date.parse(lastToken ?? '')) / MINUTE).toBeCloseTo(20, 0);
});

test("the time of an appliance's last refresh stays the same when the clock is set and when status is read again", async () => {
  const { harness } = await BrokerHarness.startPaired();
  await harness.time.pass(20 * MINUTE);
  const { lastRefresh } = statusOf(harness);
  // A step as small as one that NTP slews.
  harness.time.wall += 400;
  expect(statusOf(harness).lastRefresh).toBe(lastRefresh);
  harness.time.wall -= 2 * HOUR;
  expect(refreshedAgo(harness)).toBeCloseTo(20, 0);
  harness.time.wall += 48 * HOUR;
  expect(refreshedAgo(harness)).toBeCloseTo(20, 0);
});
