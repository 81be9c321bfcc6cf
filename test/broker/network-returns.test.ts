import { expect, test } from 'vitest';
import { BrokerHarness } from './broker-harness.ts';

const SECOND = 1000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;

/** A home whose portal has been out of reach for so long that its grants are tried seldom. */
async function cutOff() {
  const home = await BrokerHarness.start({ fraction: 0.999 });
  const ids = [await home.addPairedAppliance('wallbox'), await home.addPairedAppliance('heater')];
  await home.portal.disconnect();
  await home.time.pass(6 * HOUR);
  return { home, ids };
}

const states = (home: BrokerHarness, ids: readonly string[]) => ids.map((id) => home.run.grants.get(id)?.health.kind);

test('failed refreshes are sent again within seconds when the hub gets an address', async () => {
  const { home, ids } = await cutOff();
  await using _ = home;
  expect(states(home, ids)).toEqual(['failing', 'failing']);
  await home.portal.reconnect();
  home.run.grants.onNetworkChanged();
  await home.time.pass(5 * SECOND);
  expect(states(home, ids)).toEqual(['good', 'good']);
});

test('backoff starts again when the hub gets an address, because name resolution may return later', async () => {
  const { home, ids } = await cutOff();
  await using _ = home;
  home.run.grants.onNetworkChanged();
  await home.time.pass(MINUTE);
  await home.portal.reconnect();
  await home.time.pass(MINUTE);
  expect(states(home, ids)).toEqual(['good', 'good']);
});

test('a network that comes and goes all the time causes fewer than six refresh attempts a minute', async () => {
  const { home } = await cutOff();
  await using _ = home;
  const before = home.refreshAttempts;
  for (let passed = 0; passed < HOUR; passed += 6 * SECOND) {
    home.run.grants.onNetworkChanged();
    await home.time.pass(6 * SECOND);
  }
  // Of each grant: one at once, and what backs off from there within the minute until the next.
  expect((home.refreshAttempts - before) / 2).toBeLessThan(6 * 60);
  expect((home.refreshAttempts - before) / 2).toBeGreaterThan(60);
});

test("the hub respects a portal's Retry-After when the network changes", async () => {
  await using home = await BrokerHarness.start();
  const id = await home.addPairedAppliance();
  home.portal.fail('token', { kind: 'answer', status: 503, headers: { 'retry-after': '1800' } });
  await home.untilRefreshed();
  const sent = home.refreshes;
  home.run.grants.onNetworkChanged();
  await home.time.pass(20 * MINUTE);
  expect(home.refreshes).toBe(sent);
  expect(home.run.grants.get(id)?.health).toMatchObject({ problem: { code: 'portal_deferred' } });
});
