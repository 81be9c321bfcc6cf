import { absoluteTarget, type Report } from '../bench.d/suite.ts';
import { TOKEN_LIFETIME_MS } from './portal.ts';
import type { RefreshTrigger } from './rates.ts';
import type { ScenarioOutcome } from './scenarios.ts';

const SECOND = 1000;
const MINUTE = 60 * SECOND;
/** Permitted additional requests, relative to the usual rate. */
const MAX_ADDED_FACTOR = 2;
/** The scenarios with a chart. */
const CHARTED_SCENARIOS = ['outage-45', 'outage-120', 'power-cut'];
/** The time between two points of a chart, in ms. */
const CHART_STEP = 3 * MINUTE;

/** The report of all scenarios, for docs/benchmarks.md. */
export function fleetReport(outcomes: readonly ScenarioOutcome[]): Report {
  const day = outcomes.find(({ scenario }) => scenario.name === 'day');
  if (day === undefined) throw new Error('there is no normal day');
  const others = outcomes.filter((outcome) => outcome !== day);
  const most = (of: (outcome: ScenarioOutcome) => number, among = outcomes) => Math.max(...among.map(of));
  const sum = (of: (outcome: ScenarioOutcome) => number) => outcomes.reduce((all, outcome) => all + of(outcome), 0);
  const minutes = ratesOf(day, 'all', MINUTE);
  return {
    targets: [
      absoluteTarget(
        'a normal day: the busiest minute, relative to the mean',
        minutes.peak / minutes.mean,
        '×',
        1.3,
        2,
      ),
      absoluteTarget(
        "during and after an outage, a power cut or a release: additional requests by the hubs' own schedule in the busiest minute, relative to the usual rate",
        most(added, others),
        '×',
        MAX_ADDED_FACTOR,
        2,
      ),
      absoluteTarget(
        'all grants have a valid token again within one token lifetime',
        most(freshIn),
        'min',
        TOKEN_LIFETIME_MS / MINUTE,
        0,
      ),
      absoluteTarget(
        'hubs with a grant without a valid token for longer than that',
        sum(({ starvedHubs }) => starvedHubs),
        '',
        0,
        0,
      ),
      absoluteTarget(
        'grants lost',
        sum(({ lost }) => lost),
        '',
        0,
        0,
      ),
    ],
    tables: [
      [
        '| | mean, 1/s | busiest second, 1/s | 99 % of seconds below, 1/s | busiest minute, × usual | busiest minute of own schedule, × usual | busiest minute for appliances, × usual | busiest minute of the outage, × usual | 429 responses |',
        '|---|---|---|---|---|---|---|---|---|',
        ...outcomes.map(rateRow),
      ].join('\n'),
      [
        '| | all grants valid after, min | longest without a token, min | the same if an appliance requests it, min | hubs without a token for over a lifetime | grants lost |',
        '|---|---|---|---|---|---|',
        ...outcomes.map(freshRow),
      ].join('\n'),
      `The busiest second of a normal day has ${(ratesOf(day, 'all', SECOND).peak / day.usual).toFixed(2)} times the usual rate. For randomly distributed requests, ${(busiestByChance(day.usual, (day.scenario.end - day.scenario.over) / SECOND) / day.usual).toFixed(2)} times the usual rate is expected.`,
      "Requests per second; those of the hubs' own schedule in green, those for appliances in brown:",
      ...others.filter(({ scenario }) => CHARTED_SCENARIOS.includes(scenario.name)).map(chart),
    ],
  };
}

/** Requests per second over the whole scenario, as a Mermaid chart. */
function chart({ scenario, rates }: ScenarioOutcome): string {
  const line = (wanted: RefreshTrigger) =>
    `  line [${rates.windows(wanted, 0, scenario.end, CHART_STEP).map(([, rate]) => rate.toFixed(0))}]`;
  return [
    '```mermaid',
    `%%{init: {"themeVariables": {"xyChart": {"plotColorPalette": "#1a7f64, #b3541e"}}}}%%`,
    'xychart-beta',
    `  title "${scenario.title}"`,
    `  x-axis "hours" 0 --> ${scenario.end / (60 * MINUTE)}`,
    '  y-axis "requests per second"',
    ...[line('own'), line('prompted')],
    '```',
  ].join('\n');
}

/** Additional requests by the hubs' own schedule in the busiest minute, relative to the usual rate. */
function added(outcome: ScenarioOutcome): number {
  const busiest = [ratesOf(outcome, 'own', MINUTE).peak];
  for (const { from, to } of outcome.scenario.down) busiest.push(outcome.rates.of('own', from, to, MINUTE).peak);
  return Math.max(...busiest) / outcome.usual - 1;
}

/** Minutes until the last grant had a valid token. */
function freshIn({ allFresh }: ScenarioOutcome): number {
  return allFresh / MINUTE;
}

function ratesOf({ rates, scenario }: ScenarioOutcome, wanted: RefreshTrigger | 'all', window: number) {
  return rates.of(wanted, scenario.over, scenario.end, window);
}

function rateRow(outcome: ScenarioOutcome): string {
  const { mean, peak, p99 } = ratesOf(outcome, 'all', SECOND);
  const busiest = (wanted: RefreshTrigger | 'all') => times(ratesOf(outcome, wanted, MINUTE).peak, outcome);
  const cells = [mean.toFixed(1), peak, p99, busiest('all'), busiest('own'), busiest('prompted'), whileDown(outcome)];
  return `| ${[outcome.scenario.title, ...cells, outcome.deferred].join(' | ')} |`;
}

function freshRow(outcome: ScenarioOutcome): string {
  const { scenario, longest, longestAsked, starvedHubs, lost } = outcome;
  const cells = [freshIn(outcome).toFixed(0), minutesOf(longest), minutesOf(longestAsked), starvedHubs, lost];
  return `| ${[scenario.title, ...cells].join(' | ')} |`;
}

/** The busiest minute while the portal was unreachable. */
function whileDown(outcome: ScenarioOutcome): string {
  const [down] = outcome.scenario.down;
  return down === undefined ? '' : times(outcome.rates.of('all', down.from, down.to, MINUTE).peak, outcome);
}

function times(rate: number, { usual }: ScenarioOutcome): string {
  return (rate / usual).toFixed(2);
}

function minutesOf(ms: number): string {
  return (ms / MINUTE).toFixed(0);
}

/** The expected number of requests in the busiest of `windows` windows if requests are random (Poisson). */
function busiestByChance(mean: number, windows: number): number {
  let [probability, below] = [Math.exp(-mean), 0];
  for (let count = 0; ; count += 1) {
    below += probability;
    if ((1 - below) * windows < 1) return count;
    probability *= mean / (count + 1);
  }
}
