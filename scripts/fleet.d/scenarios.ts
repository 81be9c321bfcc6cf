import { SeededRandom } from '../../test/support/seeded-random.ts';
import { Fleet } from './fleet.ts';
import { type Downtime, SimulatedPortal, TOKEN_LIFETIME_MS } from './portal.ts';
import { RequestRates } from './rates.ts';
import { Staleness } from './staleness.ts';

const SECOND = 1000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
/** The fraction of the hubs at which an appliance requests one of the tokens every two minutes. */
const ASKING_FRACTION = 0.25;
/** Grants per hub. */
const GRANTS = 3;
/** Refreshes per second without faults: each grant refreshes at 75 to 85 % of its token's lifetime. */
const usualRate = (hubs: number) => (GRANTS * hubs) / ((0.8 * TOKEN_LIFETIME_MS) / SECOND);
/** The portal's capacity, relative to the usual rate. */
const CAPACITY = 4;
/** The portal's `Retry-After` beyond its capacity, in ms. */
const RETRY_AFTER = MINUTE;

/** What happens to a fleet. */
export interface Scenario {
  readonly name: string;
  /** The title in tables and charts. */
  readonly title: string;
  /** When the fault is over and the evaluation begins, and when the simulation ends, in ms. */
  readonly over: number;
  readonly end: number;
  readonly down: readonly Downtime[];
  /** The portal's capacity relative to the usual rate, if it is not {@link CAPACITY}. */
  readonly capacity?: number;
  happen?(fleet: Fleet, random: SeededRandom): void;
}

/** The outcome of a scenario. Rates are in requests per second. */
export interface ScenarioOutcome {
  readonly scenario: Scenario;
  readonly rates: RequestRates;
  readonly usual: number;
  readonly deferred: number;
  /** Milliseconds until the last grant without a valid token got one; 0 if all had one. */
  readonly allFresh: number;
  readonly longest: number;
  readonly longestAsked: number;
  readonly lost: number;
  /** Grants without a valid token at the end. */
  readonly stale: number;
  readonly starvedHubs: number;
}

const outage = (minutes: number, title: string): Scenario => ({
  ...{ name: `outage-${minutes}`, title },
  over: HOUR + minutes * MINUTE,
  end: 6 * HOUR,
  down: [{ from: HOUR, to: HOUR + minutes * MINUTE }],
});

/** All scenarios. */
export const SCENARIOS: readonly Scenario[] = [
  { name: 'day', title: 'a normal day', over: 0, end: 24 * HOUR, down: [] },
  outage(10, 'portal unreachable for 10 min'),
  outage(45, 'portal unreachable for 45 min'),
  outage(120, 'portal unreachable for 2 h'),
  {
    ...outage(45, 'portal unreachable for 45 min, capacity of twice the usual rate'),
    ...{ name: 'small-portal', capacity: 2 },
  },
  {
    name: 'power-cut',
    title: '30 % of the hubs without power for 1 h, back within a minute',
    ...{ over: 2 * HOUR, end: 6 * HOUR, down: [] },
    happen(fleet, random) {
      for (const hub of fleet.hubs) {
        if (random.fraction() < 0.3) fleet.cut(hub, HOUR, 2 * HOUR + Math.floor(MINUTE * random.fraction()));
      }
    },
  },
  {
    name: 'release',
    title: 'a release: every hub restarts within an hour',
    ...{ over: HOUR, end: 6 * HOUR, down: [] },
    happen(fleet, random) {
      for (const hub of fleet.hubs) fleet.restart(hub, HOUR + Math.floor(HOUR * random.fraction()), 10 * SECOND);
    },
  },
];

/** Simulates one scenario. The same seed gives the same outcome. */
export function simulate(scenario: Scenario, hubs: number, seed: number): ScenarioOutcome {
  const random = new SeededRandom(seed);
  const rates = new RequestRates(scenario.end);
  const usual = usualRate(hubs);
  const grants = GRANTS * hubs;
  const limits = { capacity: (scenario.capacity ?? CAPACITY) * usual, retryAfter: RETRY_AFTER };
  const portal = new SimulatedPortal({ ...limits, down: scenario.down, grants }, rates);
  const staleness = new Staleness(grants);
  const fleet = new Fleet({ hubs, grants: GRANTS, asked: ASKING_FRACTION }, portal, random, staleness);
  for (const { to } of scenario.down) fleet.at(to, () => staleness.excuseAll(to));
  scenario.happen?.(fleet, random);
  fleet.runUntil(scenario.end);
  const all = fleet.hubs.flatMap((hub) => hub.grants);
  const stale = staleness.stale(all, scenario.end);
  const { lastFresh, longest, longestAsked, starved } = staleness;
  return {
    ...{ scenario, rates, usual, deferred: portal.deferred, stale, longest, longestAsked },
    allFresh: lastFresh === null ? 0 : Math.max(0, lastFresh - scenario.over),
    lost: all.filter(({ health }) => health.kind === 'refused').length,
    starvedHubs: new Set([...starved].map((number) => Math.floor(number / GRANTS))).size,
  };
}
