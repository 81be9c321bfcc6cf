import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { startEmulator } from '../../../src/emulator/index.ts';
import { rowTable } from '../benchmarks-page.ts';
import { prepareHub, storedFleetCode } from '../hub.ts';
import { median, ratioOf } from '../statistics.ts';
import {
  type BenchOptions,
  findMeasurement,
  type Measurement,
  MeasurementCollector,
  type Report,
  ratioTarget,
  runRounds,
  type Suite,
} from '../suite.ts';
import { type SlowCardBench, startSlowCardBench } from './bench-hub.ts';

/** How much longer each sync takes, in ms. */
const SYNCS = [0, 30, 300, 3000];
/** The one of the target: a worn card. */
const WORN = 300;
/** Token requests per second. */
const RATE = 200;
/** In s: longer than any run, so that nothing is refreshed by itself. */
const TOKEN_LIFETIME = 7 * 86_400;
/** The time between two refreshes of a grant, in ms. */
const INTERVAL = 10_000;
/** In s. */
const FULL = { warmUp: 3, seconds: 30 };
const QUICK: typeof FULL = { warmUp: 1, seconds: 1 };

const P50 = 'p50';
const P99 = 'p99';
const P999 = 'p99.9';
const WORST = 'worst';
const FAILED = 'failed';
const REFRESHES = 'refreshes';
const DURATION = 'duration of a refresh';
const rowOf = (sync: number) => `syncs of ${sync} ms`;
const at = (sync: number, what: string) => `${rowOf(sync)}: ${what}`;

/** Token requests while refreshes are written to a card whose syncs take long. */
export const slowCardSuite: Suite = {
  name: 'slow-card',
  title: 'Token requests with a slow SD card',
  programs: { cc: 'gcc' },
  measure,
  report,
};

async function measure({ quick, subjects, scratch, progress }: BenchOptions): Promise<Measurement[]> {
  const measured = new MeasurementCollector();
  await using parts = new AsyncDisposableStack();
  const emulator = parts.use(await startEmulator({ tokenLifetime: TOKEN_LIFETIME }));
  const homes: { readonly name: string; readonly bench: SlowCardBench }[] = [];
  for (const [index, subject] of subjects.entries()) {
    const folder = join(scratch, `slow-card-${index}`);
    mkdirSync(folder);
    const { storeFleet } = await storedFleetCode(subject);
    const prepare = (options: Parameters<typeof prepareHub>[1]) => prepareHub(subject, options);
    const bench = parts.use(await startSlowCardBench(prepare, emulator, storeFleet, folder));
    homes.push({ name: subject.name, bench });
  }
  const syncs = quick ? [0, WORN] : SYNCS;
  const turns = syncs.flatMap((sync) => homes.map((home) => ({ ...home, sync })));
  await runRounds(quick ? 1 : 3, turns, async ({ name, bench, sync }, round) => {
    progress(`slow-card: ${name}, ${rowOf(sync)}, round ${round + 1}`);
    const { p50, p99, p999, worst, failed, refreshes } = await bench.load({
      sync,
      rate: RATE,
      interval: INTERVAL,
      ...(quick ? QUICK : FULL),
    });
    const latencies = { [P50]: p50, [P99]: p99, [P999]: p999, [WORST]: worst };
    for (const [what, value] of Object.entries(latencies)) measured.add(at(sync, what), name, 'ms', value);
    measured.add(at(sync, FAILED), name, '', failed);
    measured.add(at(sync, REFRESHES), name, '', refreshes.length, 'more');
    if (refreshes.length > 0) measured.add(at(sync, DURATION), name, 'ms', median(refreshes));
  });
  return measured.all;
}

function report(measured: readonly Measurement[]): Report {
  const of = (what: string) => findMeasurement(measured, what, 'latchkey');
  const target = ratioTarget(
    `p99.9 of a token request with syncs of ${WORN} ms: at most 2 × that without`,
    ratioOf(of(at(WORN, P999)), of(at(0, P999))),
    { atMost: 2 },
  );
  const whats = [P50, P99, P999, WORST, FAILED, REFRESHES, DURATION];
  return { targets: [target], tables: [rowTable(measured, SYNCS.map(rowOf), whats)] };
}
