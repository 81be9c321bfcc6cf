import { expect, test } from 'vitest';
import { startPortalCostBench } from '../../../scripts/bench.d/portal-cost/bench-hub.ts';
import { HubProcess } from '../../support/hub-process.ts';
import { stateFolder } from '../../support/state-folder.ts';

const LIFETIME = 5;

test('the hub sends the portal only one link request and exchange, a poll every 5 s and the due refreshes', async () => {
  using folder = stateFolder();
  await using home = await startPortalCostBench((options) => HubProcess.prepare(options), LIFETIME, folder.path);
  for (const way of ['redirect', 'polling'] as const) {
    const { links, polls, exchanges, waited } = await home.pair(way, way, 1000);
    expect({ way, links, exchanges }).toEqual({ way, links: 1, exchanges: 1 });
    // The poll that gets the code comes after the login.
    expect(polls).toBeLessThanOrEqual(waited / 5000 + 1);
  }
  let issued = 0;
  while (home.cost().ages.length < 5) issued += await home.ask(50, 1000 * LIFETIME);
  const { ages, requests, connections, others } = home.cost();
  expect(issued).toBeGreaterThan(ages.length);
  expect(connections).toBe(requests);
  expect(others).toBe(0);
  // On a busy machine refreshes only come later, except for the duration of the previous request.
  const sorted = ages.toSorted((a, b) => a - b);
  expect(sorted[Math.floor(sorted.length / 2)]).toBeGreaterThan(740 * LIFETIME);
});
