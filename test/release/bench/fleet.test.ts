import { expect, test } from 'vitest';
import { Fleet } from '../../../scripts/fleet.d/fleet.ts';
import { SimulatedPortal } from '../../../scripts/fleet.d/portal.ts';
import { RequestRates } from '../../../scripts/fleet.d/rates.ts';
import { fleetReport } from '../../../scripts/fleet.d/report.ts';
import { SCENARIOS, simulate } from '../../../scripts/fleet.d/scenarios.ts';
import { Staleness } from '../../../scripts/fleet.d/staleness.ts';
import { BrokerHarness } from '../../broker/broker-harness.ts';
import { IS_LONG_FORM } from '../../support/long.ts';

const SECOND = 1000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
const HUBS = IS_LONG_FORM ? 1500 : 500;
const HUBS_OF_A_DAY = IS_LONG_FORM ? 4000 : 1500;
/** Only the long form checks this target: in a smaller fleet it is random. */
const BY_CHANCE = 'a normal day: the busiest minute, relative to the mean';

test('the simulated fleet reaches every target in each scenario', () => {
  const outcomes = SCENARIOS.map((scenario) => simulate(scenario, scenario.name === 'day' ? HUBS_OF_A_DAY : HUBS, 1));
  const { targets } = fleetReport(outcomes);
  expect(targets.map(({ text }) => text)).toContain(BY_CHANCE);
  for (const { text, measured, verdict } of targets.filter(({ text }) => IS_LONG_FORM || text !== BY_CHANCE)) {
    expect({ text, measured, verdict }).toMatchObject({ verdict: 'met' });
  }
  for (const { scenario, stale } of outcomes) expect({ scenario: scenario.name, stale }).toMatchObject({ stale: 0 });
  // A portal with a capacity of twice the usual rate defers many requests.
  expect(outcomes.find(({ scenario }) => scenario.name === 'small-portal')?.deferred).toBeGreaterThan(HUBS / 10);
  // No token expires on a normal day, or because its hub restarts.
  const calm = outcomes.filter(({ scenario }) => scenario.name === 'day' || scenario.name === 'release');
  expect(calm.map(({ longest }) => longest)).toEqual([0, 0]);
});

test.each([true, false])(
  'a simulated hub sends requests when a real one does, with an appliance that requests tokens: %s',
  async (asks) => {
    const [outage, end] = [{ from: 1.5 * HOUR, to: 4 * HOUR }, 7 * HOUR];
    const rates = new RequestRates(end);
    const portal = new SimulatedPortal({ capacity: 100, retryAfter: MINUTE, down: [outage], grants: 1 }, rates);
    const half = { fraction: () => 0.5 };
    const alone = { hubs: 1, grants: 1, asked: asks ? 1 : 0, jitterOffset: () => 0.5 };
    new Fleet(alone, portal, half, new Staleness(1)).runUntil(end);
    const simulated = rates.windows('all', 0, end, SECOND).flatMap(([at, rate]) => Array<number>(rate).fill(at));

    await using home = await BrokerHarness.start({ fraction: 0.5 });
    const id = await home.addPairedAppliance();
    const obtained = home.run.grants.get(id)?.grant.obtained.uptime ?? 0;
    // The simulated grant begins when half of the time until its refresh has passed.
    await home.time.pass(obtained + 24 * MINUTE - home.time.uptime);
    const tried: number[] = [];
    for (let passed = 0; passed < end; passed += SECOND) {
      if (passed === outage.from) await home.portal.disconnect();
      if (passed === outage.to) await home.portal.reconnect();
      const before = home.refreshAttempts;
      if (asks && passed % (2 * MINUTE) === MINUTE) void home.run.tokenIssuer.issue(id, null);
      await home.time.pass(SECOND);
      if (home.refreshAttempts > before) tried.push(passed);
    }
    expect(simulated.length).toBeGreaterThan(asks ? 20 : 8);
    expect(simulated).toEqual(tried.map((at) => expect.closeTo(at, -4)));
  },
);
