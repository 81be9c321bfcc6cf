import { expect, test } from 'vitest';
import { BrokerHarness } from '../../broker/broker-harness.ts';

const HOURS = 3_600_000;

/** Lets three hours pass for this number of grants, and counts what the broker does meanwhile. */
async function watch(grants: number) {
  await using home = await BrokerHarness.start({ writeTimes: [0, 0] });
  for (let index = 0; index < grants; index++) await home.addPairedAppliance(`appliance-${index}`);
  let readings = 0;
  const now = home.time.now.bind(home.time);
  home.time.now = () => {
    readings += 1;
    return now();
  };
  const before = { refreshes: home.refreshAttempts, timers: home.time.delays.length };
  await home.time.pass(3 * HOURS);
  const refreshes = home.refreshAttempts - before.refreshes;
  return { refreshes, timers: home.time.delays.length - before.timers, readings, running: home.time.armed };
}

test('a refresh starts as many timers and reads the clock as often with 30 grants as with 5', async () => {
  const [one, few, many] = [await watch(1), await watch(5), await watch(30)];
  expect(many.refreshes).toBeGreaterThan(60);
  expect(many.running).toBe(one.running);
  // The hub's other work, such as one look at the clock a minute, does not depend on the number of grants.
  const perRefresh = (more: typeof one, less: typeof one, of: 'timers' | 'readings') =>
    (more[of] - less[of]) / (more.refreshes - less.refreshes);
  for (const of of ['timers', 'readings'] as const) {
    expect(perRefresh(many, few, of) / perRefresh(few, one, of), of).toBeLessThan(1.2);
  }
});
