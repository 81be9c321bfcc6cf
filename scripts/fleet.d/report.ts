import { absoluteTarget, type Report } from '../bench.d/suite.ts';
import { TOKEN_LIFETIME_MS } from './portal.ts';
import type { RefreshTrigger } from './rates.ts';
import type { ScenarioOutcome } from './scenarios.ts';

const SECOND = 1000;
const MINUTE = 60 * SECOND;
/** What may come on top of the usual requests, in times of these. */
const MAX_ADDED_FACTOR = 2;
/** The scenarios that are drawn: one look tells how a fleet comes back. */
const CHARTED_SCENARIOS = ['outage-45', 'outage-120', 'power-cut'];
/** How far apart the points of a chart are, in ms. */
const CHART_STEP = 3 * MINUTE;

/** What came of all scenarios, for whoever reads docs/benchmarks.md. */
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
        'a normal day: the busiest minute, in times of the mean',
        minutes.peak / minutes.mean,
        '×',
        1.3,
        2,
      ),
      absoluteTarget(
        'in and after an outage, a power cut or a release: what the hubs of themselves add in the busiest minute, in times of the mean',
        most(added, others),
        '×',
        MAX_ADDED_FACTOR,
        2,
      ),
      absoluteTarget(
        'all grants are fresh again within a lifetime of a token',
        most(freshIn),
        'min',
        TOKEN_LIFETIME_MS / MINUTE,
        0,
      ),
      absoluteTarget(
        'hubs without a fresh token for longer than that',
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
        "| | mean, 1/s | busiest second, 1/s | 99 % of seconds below | busiest minute, × usual | of it the hubs' own | for an appliance | while it lasted, × usual | 429 |",
        '|---|---|---|---|---|---|---|---|---|',
        ...outcomes.map(rateRow),
      ].join('\n'),
      [
        '| | all fresh after, min | longest without a token, min | the same where an appliance asks | hubs starved | grants lost |',
        '|---|---|---|---|---|---|',
        ...outcomes.map(freshRow),
      ].join('\n'),
      `The busiest second of a day is ${(ratesOf(day, 'all', SECOND).peak / day.usual).toFixed(2)} times the mean; of requests at random it is expected to be ${(busiestByChance(day.usual, (day.scenario.end - day.scenario.over) / SECOND) / day.usual).toFixed(2)} times the mean.`,
      "Requests a second, the hubs' own in green and those for an appliance in brown:",
      ...others.filter(({ scenario }) => CHARTED_SCENARIOS.includes(scenario.name)).map(chart),
    ],
  };
}

/** Requests a second from the beginning to the end, as a chart that viewers of Markdown draw. */
function chart({ scenario, rates }: ScenarioOutcome): string {
  const line = (wanted: RefreshTrigger) =>
    `  line [${rates.windows(wanted, 0, scenario.end, CHART_STEP).map(([, rate]) => rate.toFixed(0))}]`;
  return [
    '```mermaid',
    `%%{init: {"themeVariables": {"xyChart": {"plotColorPalette": "#1a7f64, #b3541e"}}}}%%`,
    'xychart-beta',
    `  title "${scenario.title}"`,
    `  x-axis "hours" 0 --> ${scenario.end / (60 * MINUTE)}`,
    '  y-axis "requests a second"',
    ...[line('own'), line('prompted')],
    '```',
  ].join('\n');
}

/** What the hubs' own refreshes add to the usual ones in the busiest minute, in times of these. */
function added(outcome: ScenarioOutcome): number {
  const busiest = [ratesOf(outcome, 'own', MINUTE).peak];
  for (const { from, to } of outcome.scenario.down) busiest.push(outcome.rates.of('own', from, to, MINUTE).peak);
  return Math.max(...busiest) / outcome.usual - 1;
}

/** Minutes until the last grant had a token. */
function freshIn({ allFresh }: ScenarioOutcome): number {
  return allFresh / MINUTE;
}

function ratesOf({ rates, scenario }: ScenarioOutcome, wanted: RefreshTrigger | 'all', window: number) {
  return rates.of(wanted, scenario.over, scenario.end, window);
}

function rateRow(outcome: ScenarioOutcome): string {
  const { mean, peak, p99 } = ratesOf(outcome, 'all', SECOND);
  const busiest = (wanted: RefreshTrigger | 'all') => times(ratesOf(outcome, wanted, MINUTE).peak, outcome);
  const cells = [mean.toFixed(1), peak, p99, busiest('all'), busiest('own'), busiest('prompted'), meanwhile(outcome)];
  return `| ${[outcome.scenario.title, ...cells, outcome.deferred].join(' | ')} |`;
}

function freshRow(outcome: ScenarioOutcome): string {
  const { scenario, longest, longestAsked, starvedHubs, lost } = outcome;
  const cells = [freshIn(outcome).toFixed(0), minutesOf(longest), minutesOf(longestAsked), starvedHubs, lost];
  return `| ${[scenario.title, ...cells].join(' | ')} |`;
}

/** The busiest minute while the portal was away. */
function meanwhile(outcome: ScenarioOutcome): string {
  const [down] = outcome.scenario.down;
  return down === undefined ? '' : times(outcome.rates.of('all', down.from, down.to, MINUTE).peak, outcome);
}

function times(rate: number, { usual }: ScenarioOutcome): string {
  return (rate / usual).toFixed(2);
}

function minutesOf(ms: number): string {
  return (ms / MINUTE).toFixed(0);
}

/** How many requests the busiest of so many windows is expected to have where they come at random (Poisson). */
function busiestByChance(mean: number, windows: number): number {
  let [probability, below] = [Math.exp(-mean), 0];
  for (let count = 0; ; count += 1) {
    below += probability;
    if ((1 - below) * windows < 1) return count;
    probability *= mean / (count + 1);
  }
}
