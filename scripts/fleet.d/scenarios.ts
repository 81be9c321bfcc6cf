import { SeededRandom } from '../../test/support/seeded-random.ts';
import { Fleet } from './fleet.ts';
import { type Downtime, SimulatedPortal, TOKEN_LIFETIME_MS } from './portal.ts';
import { RequestRates } from './rates.ts';
import { Staleness } from './staleness.ts';

const SECOND = 1000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
/** The part of the hubs where an appliance asks for one of the tokens every other minute. */
const ASKING_FRACTION = 0.25;
/** Grants of a hub. */
const GRANTS = 3;
/** Refreshes a second that so many grants need anyway: each at 75 to 85 % of its token's life. */
const usualRate = (hubs: number) => (GRANTS * hubs) / ((0.8 * TOKEN_LIFETIME_MS) / SECOND);
/** How many times the usual rate the portal has room for. */
const CAPACITY = 4;
/** What it asks of the others, in ms. */
const RETRY_AFTER = MINUTE;

/** What happens to a fleet. */
export interface Scenario {
  readonly name: string;
  /** What happens, for whoever reads a table. */
  readonly title: string;
  /** When it is over and what follows is looked at, in ms; and the end of all. */
  readonly over: number;
  readonly end: number;
  readonly down: readonly Downtime[];
  /** What the portal has room for, in times of the usual rate, where that is not {@link CAPACITY}. */
  readonly capacity?: number;
  happen?(fleet: Fleet, random: SeededRandom): void;
}

/** What came of it. Rates are requests a second. */
export interface ScenarioOutcome {
  readonly scenario: Scenario;
  readonly rates: RequestRates;
  readonly usual: number;
  readonly deferred: number;
  /** Milliseconds until the last grant that had no token had one; 0 where all had one. */
  readonly allFresh: number;
  readonly longest: number;
  readonly longestAsked: number;
  readonly lost: number;
  /** Grants without a token in the end. */
  readonly stale: number;
  readonly starvedHubs: number;
}

const outage = (minutes: number, title: string): Scenario => ({
  ...{ name: `outage-${minutes}`, title },
  over: HOUR + minutes * MINUTE,
  end: 6 * HOUR,
  down: [{ from: HOUR, to: HOUR + minutes * MINUTE }],
});

/** All that is simulated. */
export const SCENARIOS: readonly Scenario[] = [
  { name: 'day', title: 'a normal day', over: 0, end: 24 * HOUR, down: [] },
  outage(10, 'the portal is away for 10 min'),
  outage(45, 'the portal is away for 45 min'),
  outage(120, 'the portal is away for 2 h'),
  {
    ...outage(45, 'the same for 45 min, and it has room for twice the usual rate'),
    ...{ name: 'small-portal', capacity: 2 },
  },
  {
    name: 'power-cut',
    title: 'no power for 30 % of the hubs for 1 h, back within a minute',
    ...{ over: 2 * HOUR, end: 6 * HOUR, down: [] },
    happen(fleet, random) {
      for (const hub of fleet.hubs) {
        if (random.fraction() < 0.3) fleet.cut(hub, HOUR, 2 * HOUR + Math.floor(MINUTE * random.fraction()));
      }
    },
  },
  {
    name: 'release',
    title: 'a release: every hub is started again within an hour',
    ...{ over: HOUR, end: 6 * HOUR, down: [] },
    happen(fleet, random) {
      for (const hub of fleet.hubs) fleet.restart(hub, HOUR + Math.floor(HOUR * random.fraction()), 10 * SECOND);
    },
  },
];

/** Simulates one scenario. The same seed makes the same of it. */
export function simulate(scenario: Scenario, hubs: number, seed: number): ScenarioOutcome {
  const random = new SeededRandom(seed);
  const rates = new RequestRates(scenario.end);
  const usual = usualRate(hubs);
  const grants = GRANTS * hubs;
  const room = { capacity: (scenario.capacity ?? CAPACITY) * usual, retryAfter: RETRY_AFTER };
  const portal = new SimulatedPortal({ ...room, down: scenario.down, grants }, rates);
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
