import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { type Emulator, startEmulator } from '../../src/emulator/index.ts';
import type { HubProcess } from '../../test/support/hub-process.ts';
import { SlowSyncs } from '../../test/support/slow-syncs.ts';
import { measurementTable } from './benchmarks-page.ts';
import { pairAppliances, startHub, tokenLoops } from './hub.ts';
import { type LoadResult, runLoad } from './load.ts';
import {
  type BenchOptions,
  type BenchSubject,
  type Measurements,
  median,
  type Report,
  ratioTarget,
  runRounds,
  type Suite,
} from './suite.ts';

/** The grants, each of one appliance. */
const APPLIANCES = 6;
/** How much longer each sync takes, in ms. */
const SYNCS = [0, 30, 300, 3000];
/** The one of the target: a worn card. */
const WORN = 300;
/** In s: longer than any run, so that nothing is refreshed by itself. */
const TOKEN_LIFETIME = 7 * 86_400;
/** The time in which the load connects before syncs take longer, in ms. */
const CONNECTING = 1000;

const TAIL = 'p99.9';
const REFRESHES = 'refreshes';
const DURATION = 'duration of a refresh';
const rowOf = (sync: number) => `syncs of ${sync} ms`;

/** Token requests while refreshes are written to a card whose syncs take long. */
export const slowCardSuite: Suite = {
  name: 'slow-card',
  title: 'Token requests with a slow SD card',
  programs: { cc: 'gcc' },
  measure,
  report,
};

/** A load on a hub with a slow card. */
interface SlowCardLoad {
  /** How much longer each sync takes, in ms. */
  readonly sync: number;
  /** Token requests per second. */
  readonly rate: number;
  /** The time between two refreshes of a grant, in ms. */
  readonly interval: number;
  /** In s, as for `runLoad`. */
  readonly warmUp: number;
  readonly seconds: number;
}

/** A hub whose syncs can be slowed down. */
export interface SlowCardHub extends AsyncDisposable {
  /**
   * Sends token requests at regular intervals, while every grant is refreshed again and again.
   * @returns also the durations of the refreshes that succeeded meanwhile, in ms
   */
  load(load: SlowCardLoad): Promise<LoadResult & { readonly refreshes: readonly number[] }>;
}

/**
 * Starts a hub with six grants.
 * @param emulator whose tokens outlive the run, so that no token request has to wait for a refresh
 * @param folder for the file that sets the duration of syncs
 */
export async function startSlowCardHub(
  subject: BenchSubject,
  emulator: Emulator,
  folder: string,
): Promise<SlowCardHub> {
  await using parts = new AsyncDisposableStack();
  const syncs = new SlowSyncs(folder);
  const hub = parts.use(await startHub(subject, { emulator, env: syncs.env }));
  const appliances = await pairAppliances(hub, emulator, APPLIANCES);
  const loops = tokenLoops(hub.httpsPort, appliances);
  const running = parts.move();
  return {
    async load({ sync, rate, interval, warmUp, seconds }) {
      const durations: number[] = [];
      const loading = runLoad(subject.name, { port: hub.httpsPort, loops, rate, warmUp, seconds })
        .then((load) => ({ ...load, refreshes: [...durations] }))
        .finally(() => syncs.setDuration(0));
      await Promise.race([loading, sleep(CONNECTING)]);
      syncs.setDuration(sync);
      const now = performance.now();
      const refreshing = appliances.map(({ name }, index) => {
        const from = now + (index * interval) / appliances.length;
        return refreshRepeatedly(hub, name, { from, interval, to: now + 1000 * (warmUp + seconds) }, durations);
      });
      const [load] = await Promise.all([loading, ...refreshing]);
      return load;
    },
    [Symbol.asyncDispose]: () => running.disposeAsync(),
  };
}

/**
 * Refreshes a grant at regular intervals; all times in ms.
 * @param from the time of the first refresh
 * @param to no refresh begins after this time
 * @param durations gets the duration of each refresh when it ends
 */
async function refreshRepeatedly(
  hub: HubProcess,
  name: string,
  { from, interval, to }: { readonly from: number; readonly interval: number; readonly to: number },
  durations: number[],
): Promise<void> {
  for (let due = from; due < to; due += interval) {
    await sleep(Math.max(0, due - performance.now()));
    const began = performance.now();
    const { state, problem } = await hub.ask((control) => control.request('refresh', { name }));
    if (state !== 'active') throw new Error(`${name} is ${state}: ${problem?.message}`);
    durations.push(performance.now() - began);
  }
}

async function measure({ quick, subjects, scratch, progress }: BenchOptions, measured: Measurements): Promise<void> {
  await using parts = new AsyncDisposableStack();
  const emulator = parts.use(await startEmulator({ tokenLifetime: TOKEN_LIFETIME }));
  const hubs: { readonly of: string; readonly hub: SlowCardHub }[] = [];
  for (const [index, subject] of subjects.entries()) {
    const folder = join(scratch, `slow-card-${index}`);
    mkdirSync(folder);
    hubs.push({ of: subject.name, hub: parts.use(await startSlowCardHub(subject, emulator, folder)) });
  }
  const syncs = quick ? [0, WORN] : SYNCS;
  const turns = syncs.flatMap((sync) => hubs.map((one) => ({ ...one, sync })));
  await runRounds(quick ? 1 : 3, turns, async ({ of, hub, sync }, round) => {
    const row = rowOf(sync);
    progress(`slow-card: ${of}, ${row}, round ${round + 1}`);
    const time = quick ? { warmUp: 1, seconds: 1 } : { warmUp: 3, seconds: 30 };
    const { p50, p99, p999, worst, refreshes } = await hub.load({ sync, rate: 200, interval: 10_000, ...time });
    const latencies = { p50, p99, [TAIL]: p999, worst };
    for (const [what, value] of Object.entries(latencies)) measured.add(row, what, 'ms', value, { of });
    measured.add(row, REFRESHES, '', refreshes.length, { of, better: 'more' });
    if (refreshes.length > 0) measured.add(row, DURATION, 'ms', median(refreshes), { of });
  });
}

function report(measured: Measurements): Report {
  const text = `p99.9 of a token request with syncs of ${WORN} ms: at most 2 × that without`;
  return {
    targets: [ratioTarget(text, measured.ratio(rowOf(WORN), rowOf(0), TAIL), { atMost: 2 })],
    tables: [measurementTable(measured, SYNCS.map(rowOf), ['p50', 'p99', TAIL, 'worst', REFRESHES, DURATION])],
  };
}
