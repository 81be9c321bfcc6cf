import { measurementTable } from '../benchmarks-page.ts';
import { prepareHub } from '../hub.ts';
import { median } from '../statistics.ts';
import {
  absoluteTarget,
  type BenchOptions,
  findMeasurement,
  type Measurement,
  MeasurementCollector,
  type Report,
  runRounds,
  type Suite,
} from '../suite.ts';
import { startPortalCostBench } from './bench-hub.ts';

/** The lifetime of the portal's tokens here, in s. The counts are converted to tokens with a lifetime of one hour. */
const LIFETIME = 10;
const APPLIANCES = 10;
/** The shortest permitted interval of polls, in ms: docs/portal.md. */
const POLL_INTERVAL = 5000;
const MIN_REFRESHES_PER_DAY = 24;

const REFRESHES_PER_DAY = 'refreshes per appliance and day';
const CONNECTIONS = 'connections per refresh';
const BYTES = 'sent in both directions per refresh, with TLS';
const OTHERS = 'other requests';
const HAND_OUTS = 'tokens issued meanwhile';
const LINKS = 'link requests';
const POLLS = 'polls';
const MAX_POLLS = 'maximum polls at one in 5 s';
const EXCHANGES = 'exchanges';
const WAYS = ['redirect', 'polling'] as const;
const paired = (way: string, what: string) => `pairing by ${way}: ${what}`;

/** The requests of a hub to its portal. */
export const portalCostSuite: Suite = {
  name: 'portal-cost',
  title: 'Requests to the portal',
  programs: {},
  measure,
  report,
};

async function measure({ quick, subjects, scratch, progress }: BenchOptions): Promise<Measurement[]> {
  const measured = new MeasurementCollector();
  await runRounds(quick ? 1 : 3, subjects, async (subject, round) => {
    progress(`portal-cost: ${subject.name}, round ${round + 1}`);
    await using home = await startPortalCostBench((options) => prepareHub(subject, options), LIFETIME, scratch);
    for (const way of WAYS) {
      const cost = await home.pair(`waits-for-${way}`, way, quick ? 1000 : 3.5 * POLL_INTERVAL);
      measured.add(paired(way, LINKS), subject.name, '', cost.links);
      measured.add(paired(way, POLLS), subject.name, '', cost.polls);
      measured.add(paired(way, MAX_POLLS), subject.name, '', Math.floor(cost.waited / POLL_INTERVAL) + 1);
      measured.add(paired(way, EXCHANGES), subject.name, '', cost.exchanges);
    }
    for (let count = WAYS.length; count < APPLIANCES; count += 1) await home.pair(`appliance-${count}`, 'redirect', 0);
    const issued = await home.ask((1000 * LIFETIME) / 30, (quick ? 1.5 : 6) * 1000 * LIFETIME);
    const { ages, requests, connections, bytes, others } = home.cost();
    const meanAge = ages.reduce((sum, age) => sum + age, 0) / ages.length;
    measured.add(REFRESHES_PER_DAY, subject.name, '', (MIN_REFRESHES_PER_DAY * 1000 * LIFETIME) / meanAge);
    measured.add(CONNECTIONS, subject.name, '', connections / requests);
    measured.add(BYTES, subject.name, 'kB', bytes / requests / 1000);
    measured.add(OTHERS, subject.name, '', others);
    measured.add(HAND_OUTS, subject.name, '', issued, 'more');
  });
  return measured.all;
}

function report(measured: readonly Measurement[]): Report {
  const of = (what: string) => median(findMeasurement(measured, what, 'latchkey').values);
  const whole = (text: string, what: string, atMost: number) => absoluteTarget(text, of(what), '', atMost, 0);
  return {
    targets: [
      absoluteTarget(
        'refreshes per appliance, relative to the minimum: at most 1 / 0.75',
        of(REFRESHES_PER_DAY) / MIN_REFRESHES_PER_DAY,
        '×',
        1 / 0.75,
        2,
      ),
      absoluteTarget('connections per refresh: at most one', of(CONNECTIONS), '', 1, 2),
      ...WAYS.map((way) =>
        whole(`pairing by ${way}, polls: at most one in 5 s`, paired(way, POLLS), of(paired(way, MAX_POLLS))),
      ),
      ...WAYS.map((way) => whole(`pairing by ${way}, link requests: at most one`, paired(way, LINKS), 1)),
      ...WAYS.map((way) => whole(`pairing by ${way}, exchanges: at most one`, paired(way, EXCHANGES), 1)),
      whole('other requests: none', OTHERS, 0),
    ],
    tables: [
      measurementTable(measured, [REFRESHES_PER_DAY, CONNECTIONS, BYTES, OTHERS, HAND_OUTS], ['latchkey']),
      measurementTable(
        measured,
        WAYS.flatMap((way) => [LINKS, POLLS, MAX_POLLS, EXCHANGES].map((what) => paired(way, what))),
        ['latchkey'],
      ),
    ],
  };
}
