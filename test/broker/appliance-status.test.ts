import { expect, test } from 'vitest';
import { applianceStatus } from '../../src/broker/appliances/appliance-status.ts';
import { BrokerHarness } from './broker-harness.ts';

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;

function statusOf(home: BrokerHarness) {
  return applianceStatus(home.run.appliances.get('wallbox'), home.run, () => '');
}

/** How long ago the last refresh was by the hub's own clock, in minutes; null where that is not told. */
function refreshedAgo(home: BrokerHarness): number | null {
  const { lastRefresh } = statusOf(home);
  return lastRefresh === null ? null : (home.time.wall - Date.parse(lastRefresh)) / MINUTE;
}

test("the last refresh of an appliance lies in the past by a hub clock that is behind the portal's clock", async () => {
  const portal = { wall: Date.UTC(2031, 4, 5, 8, 30) };
  await using home = await BrokerHarness.start({ emulator: { clock: { now: () => portal } } });
  await home.addPairedAppliance();
  const [grant] = await home.run.store.grants();
  expect(grant?.grant.portalTime).toBeGreaterThan(home.time.wall + HOUR);
  await home.time.pass(20 * MINUTE);
  expect(refreshedAgo(home)).toBeCloseTo(20, 0);
});

test("the time of an appliance's last refresh stays the same when the clock is set and when status is read again", async () => {
  await using home = await BrokerHarness.start();
  await home.addPairedAppliance();
  await home.time.pass(20 * MINUTE);
  const { lastRefresh } = statusOf(home);
  // NTP slews a clock by such steps.
  home.time.wall += 400;
  expect(statusOf(home).lastRefresh).toBe(lastRefresh);
  home.time.wall -= 2 * HOUR;
  expect(refreshedAgo(home)).toBeCloseTo(20, 0);
  home.time.wall += 48 * HOUR;
  expect(refreshedAgo(home)).toBeCloseTo(20, 0);
});

test('an appliance has no time of the last refresh while the hub clock is earlier than that time after a reboot', async () => {
  await using home = await BrokerHarness.start();
  await home.addPairedAppliance();
  await home.stop();
  home.time.reboot(home.time.wall - HOUR);
  await home.start();
  expect(statusOf(home).lastRefresh).toBeNull();
});

test("the problem message of a grant that another portal issued does not repeat the appliance's name", async () => {
  await using home = await BrokerHarness.start();
  await home.addPairedAppliance();
  await home.stop();
  home.identity = { origin: 'https://other.example', clientId: 'another-client' };
  await home.start();
  expect(statusOf(home).problem).toMatchObject({
    code: 'refused',
    message: expect.stringMatching(/^It was paired with http:.* \(client_id .*a new login replaces it$/),
  });
});
