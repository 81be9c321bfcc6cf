import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { rowTable } from '../benchmarks-page.ts';
import { prepareHub, storedFleetCode } from '../hub.ts';
import { ratioOf } from '../statistics.ts';
import {
  type BenchOptions,
  type BenchSubject,
  findMeasurement,
  type Measurement,
  MeasurementCollector,
  type Report,
  ratioTarget,
  runRounds,
  type Suite,
} from '../suite.ts';
import { bootTime, type ManyGrantsBench, startManyGrantsBench } from './bench-hub.ts';

/** The time between two refreshes if ten thousand grants are due within an hour, in ms. */
const APART = 3_600_000 / 10_000;
/** Token requests per second. */
const RATE = 50;

/** `setUp` is the time until the first period, for each hub; all times in s. */
const FULL = { rounds: 5, grants: 10_000, setUp: 60, warmUp: 2, seconds: 30, rest: 5 };
const QUICK: typeof FULL = { rounds: 1, grants: 100, setUp: 10, warmUp: 0.1, seconds: 1, rest: 0.5 };
/** How long grants are due after the load should have ended, in s. */
const MARGIN = 2;

const IDLE = 'no grants due';
const DUE = '2.8 refreshes per second';
const SLOW = `${DUE}, syncs of 30 ms`;
const PERIODS = [
  { row: IDLE, isDue: false, sync: 0 },
  { row: DUE, isDue: true, sync: 0 },
  { row: SLOW, isDue: true, sync: 30 },
];

const P50 = 'p50';
const P99 = 'p99';
const WORST = 'worst';
const REFRESHES = 'refreshes';

/** Token requests to a hub with ten thousand grants that are due evenly within an hour. */
export const manyGrantsSuite: Suite = {
  name: 'many-grants',
  title: 'Token requests while ten thousand grants are due',
  programs: { cc: 'gcc' },
  measure,
  report,
};

async function measure({ quick, subjects, scratch, progress }: BenchOptions): Promise<Measurement[]> {
  const { rounds, grants, setUp, warmUp, seconds, rest } = quick ? QUICK : FULL;
  const measured = new MeasurementCollector();
  // When each hub's grants are due is decided before they are written: only in the periods of that hub with refreshes.
  const plan: { readonly subject: BenchSubject; readonly period: (typeof PERIODS)[number] }[] = [];
  const turns = PERIODS.flatMap((period) => subjects.map((subject) => ({ subject, period })));
  await runRounds(rounds, turns, async (turn) => void plan.push(turn));
  const dueFor = 1000 * (warmUp + seconds + MARGIN);
  const each = dueFor + 1000 * rest;
  const begin = bootTime() + 1000 * setUp * subjects.length;

  await using parts = new AsyncDisposableStack();
  const benches = new Map<BenchSubject, ManyGrantsBench>();
  for (const [index, subject] of subjects.entries()) {
    progress(`many-grants: ${subject.name}, ${grants} grants`);
    const folder = join(scratch, `many-grants-${index}`);
    mkdirSync(folder);
    const { storeMadeUpFleet } = await storedFleetCode(subject);
    const dueAt = plan.flatMap(({ subject: of, period: { isDue } }, number) =>
      isDue && of === subject ? everySoOften(begin + number * each, dueFor / APART) : [],
    );
    // The others are due after the run.
    dueAt.push(...everySoOften(begin + plan.length * each, grants - dueAt.length));
    const prepare = (options: Parameters<typeof prepareHub>[1]) => prepareHub(subject, options);
    benches.set(subject, parts.use(await startManyGrantsBench(prepare, storeMadeUpFleet, dueAt, folder)));
  }
  for (const [number, { subject, period }] of plan.entries()) {
    progress(`many-grants: ${subject.name}, ${period.row}, ${number + 1} of ${plan.length}`);
    const job = { from: begin + number * each, sync: period.sync, rate: RATE, warmUp, seconds };
    const load = await benches.get(subject)?.load(job);
    if (load === undefined) continue;
    const { p50, p99, worst, refreshes } = load;
    const latencies = { [P50]: p50, [P99]: p99, [WORST]: worst };
    for (const [what, value] of Object.entries(latencies)) {
      measured.add(`${period.row}: ${what}`, subject.name, 'ms', value);
    }
    measured.add(`${period.row}: ${REFRESHES}`, subject.name, '', refreshes, 'more');
  }
  return measured.all;
}

function everySoOften(from: number, times: number): number[] {
  return Array.from({ length: times }, (_, index) => from + index * APART);
}

function report(measured: readonly Measurement[]): Report {
  const of = (row: string) => findMeasurement(measured, `${row}: ${P99}`, 'latchkey');
  const target = (row: string) =>
    ratioTarget(`p99 with ${row}: at most 2 × that with ${IDLE}`, ratioOf(of(row), of(IDLE)), { atMost: 2 });
  return {
    targets: [target(DUE)],
    tables: [
      rowTable(
        measured,
        PERIODS.map(({ row }) => row),
        [P50, P99, WORST, REFRESHES],
      ),
    ],
  };
}
