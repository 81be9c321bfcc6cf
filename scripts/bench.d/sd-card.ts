import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { startEmulator } from '../../src/emulator/index.ts';
import { type SystemCall, traceSystemCalls } from '../../test/chaos/system-calls.ts';
import { FaultyPortal } from '../../test/support/faulty-portal.ts';
import { eventually, type HubProcess } from '../../test/support/hub-process.ts';
import { measurementTable } from './benchmarks-page.ts';
import { countSnapshots, pairAppliances, startHub } from './hub.ts';
import {
  absoluteTarget,
  type BenchOptions,
  type BenchSubject,
  type Measurements,
  type Report,
  runRounds,
  type Suite,
} from './suite.ts';

const APPLIANCES = 10;
/** Characters of a token: the emulator's, and a large signed token. */
const [SHORT, LONG] = [81, 1800];
/** The system calls that pass file data to the kernel, or from there to the disk. */
const SYNC_CALLS = ['fsync', 'fdatasync', 'sync_file_range', 'syncfs', 'msync'];
const WRITE_CALLS = ['write', 'pwrite64', 'writev', 'pwritev', 'pwritev2', 'ftruncate', 'fallocate'];

const TOKEN_REQUEST = 'token request';
const IDLE = 'idle minute';
const PAIRING = 'pairing';
const SNAPSHOT = 'nightly snapshot';
const alone = (characters: number) => `refresh, tokens of ${characters} characters`;
const together = (characters: number) =>
  `one of ${APPLIANCES} refreshes due together, tokens of ${characters} characters`;

const SYNCS = 'syncs';
const WRITTEN = 'to the kernel';
const BLOCKS = 'in blocks';

/** How much the hub writes, and how often it waits until that is on the SD card. */
export const sdCardSuite: Suite = {
  name: 'sd-card',
  title: 'Writes to the SD card',
  programs: { strace: 'strace' },
  measure,
  report,
};

/** The writes of a hub to its state directory. */
interface WriteStatistics {
  /** How often the process waited until its writes were on the disk. */
  readonly syncs: number;
  readonly writes: number;
  /** Bytes that were passed to the kernel. */
  readonly bytes: number;
  /** Bytes of the 4 KiB blocks that the kernel has to write, as `/proc/PID/io` counts them. */
  readonly blocks?: number;
}

/** A hub with appliances, whose disk writes are traced. */
export interface SdCardHub extends AsyncDisposable {
  /** Traces its writes to the state directory during `work`. */
  watched(work: () => Promise<unknown>): Promise<WriteStatistics & { readonly calls: readonly SystemCall[] }>;
  /** Refreshes each appliance once, one after another. @returns how many */
  refreshEach(): Promise<number>;
  /** Refreshes all appliances at once. @returns how many */
  refreshTogether(): Promise<number>;
  /** Requests tokens, one after another. */
  requestTokens(times: number): Promise<void>;
  /** Pairs the first appliance again, and waits for the snapshot that follows. */
  pair(): Promise<void>;
}

/** Starts a portal and a hub, and pairs appliances. @param characters of the portal's tokens, at least the emulator's */
export async function startSdCardHub(
  subject: BenchSubject,
  { appliances = APPLIANCES, characters = SHORT }: { readonly appliances?: number; readonly characters?: number } = {},
): Promise<SdCardHub> {
  await using parts = new AsyncDisposableStack();
  const emulator = parts.use(await startEmulator());
  const portal = parts.use(await FaultyPortal.start(emulator));
  portal.tokenPadding = characters - SHORT;
  const { baseUrl, frontendUrl } = portal;
  const { clientId, clientSecret } = emulator;
  const hub = parts.use(await startHub(subject, { emulator: { baseUrl, frontendUrl, clientId, clientSecret } }));
  await eventually(async () => countSnapshots(hub) > 0);
  const [first, ...others] = await pairAppliances(hub, emulator, appliances);
  if (first === undefined) throw new Error('there is no appliance');
  const names = [first, ...others].map(({ name }) => name);
  const refresh = async (name: string) => {
    const { state, problem } = await hub.ask((control) => control.request('refresh', { name }));
    if (state !== 'active') throw new Error(`${name} is ${state}: ${problem?.message}`);
  };
  const running = parts.move();
  return {
    watched: (work) => watch(hub, work),
    async refreshEach() {
      for (const name of names) await refresh(name);
      return names.length;
    },
    async refreshTogether() {
      await Promise.all(names.map(refresh));
      return names.length;
    },
    async requestTokens(times) {
      for (let count = 0; count < times; count += 1) {
        const { status } = await hub.requestToken(first);
        if (status !== 200) throw new Error(`a token request got the status ${status}`);
      }
    },
    async pair() {
      const before = countSnapshots(hub);
      await hub.pair(first.name, emulator);
      await eventually(async () => countSnapshots(hub) > before);
    },
    [Symbol.asyncDispose]: () => running.disposeAsync(),
  };
}

async function watch({ pid, directory }: HubProcess, work: () => Promise<unknown>) {
  let blocks = 0;
  const calls = await traceSystemCalls(pid, [...SYNC_CALLS, ...WRITE_CALLS], async () => {
    const before = blocksOf(pid);
    await work();
    blocks = blocksOf(pid) - before;
  });
  const onFiles = calls.filter(({ on }) => on.startsWith(join(directory, 'state')));
  return { ...sumCalls(onFiles), blocks, calls: onFiles };
}

function sumCalls(calls: readonly SystemCall[]): WriteStatistics {
  const syncs = calls.filter(({ name }) => SYNC_CALLS.includes(name)).length;
  return { syncs, writes: calls.length - syncs, bytes: calls.reduce((sum, { bytes }) => sum + bytes, 0) };
}

function blocksOf(pid: number): number {
  return Number(/^write_bytes: (\d+)$/m.exec(readFileSync(`/proc/${pid}/io`, 'utf8'))?.[1]);
}

async function measure({ quick, subjects, progress }: BenchOptions, measured: Measurements): Promise<void> {
  // A WAL checkpoint occurs every few dozen refreshes: there are so many that their mean includes checkpoints.
  const times = quick ? 1 : 15;
  await runRounds(quick ? 1 : 3, subjects, async (subject, round) => {
    const add = (row: string, { syncs, bytes, blocks }: WriteStatistics, by = 1) => {
      const of = subject.name;
      measured.add(row, SYNCS, '', syncs / by, { of });
      measured.add(row, WRITTEN, 'kB', bytes / 1000 / by, { of });
      if (blocks !== undefined) measured.add(row, BLOCKS, 'kB', blocks / 1000 / by, { of });
    };
    for (const characters of [SHORT, LONG]) {
      progress(`sd-card: ${subject.name}, tokens of ${characters} characters, round ${round + 1}`);
      await using hub = await startSdCardHub(subject, { characters });
      const repeated = async (row: string, refresh: () => Promise<number>) => {
        let count = 0;
        const written = await hub.watched(async () => {
          for (let time = 0; time < times; time += 1) count += await refresh();
        });
        add(row, written, count);
      };
      await repeated(alone(characters), hub.refreshEach);
      await repeated(together(characters), hub.refreshTogether);
      if (characters !== SHORT) continue;
      const requests = quick ? 20 : 1000;
      add(TOKEN_REQUEST, await hub.watched(() => hub.requestTokens(requests)), requests);
      add(IDLE, await hub.watched(() => sleep(quick ? 2000 : 60_000)));
      const { calls } = await hub.watched(() => hub.pair());
      const begun = calls.findIndex(({ on }) => on.includes('.copy'));
      add(PAIRING, sumCalls(calls.slice(0, begun)));
      add(SNAPSHOT, sumCalls(calls.slice(begun)));
    }
  });
}

function report(measured: Measurements): Report {
  const of = (row: string, what: string) => measured.median(row, what);
  const inKilobytes = (characters: number) =>
    absoluteTarget(
      `a refresh with tokens of ${characters} characters: at most 16 kB`,
      of(alone(characters), WRITTEN),
      'kB',
      16,
    );
  const allTogether = `syncs of ${APPLIANCES} refreshes that are due together: fewer than ${APPLIANCES}`;
  const rows = [SHORT, LONG].flatMap((characters) => [alone(characters), together(characters)]);
  return {
    targets: [
      absoluteTarget('syncs per refresh: at most 3', of(alone(SHORT), SYNCS), '', 3, 2),
      inKilobytes(SHORT),
      inKilobytes(LONG),
      absoluteTarget('a token request writes nothing', of(TOKEN_REQUEST, WRITTEN), 'kB', 0),
      absoluteTarget('a token request waits for no sync', of(TOKEN_REQUEST, SYNCS), '', 0),
      absoluteTarget(allTogether, APPLIANCES * of(together(SHORT), SYNCS), '', APPLIANCES - 1),
    ],
    tables: [measurementTable(measured, [...rows, PAIRING, SNAPSHOT, TOKEN_REQUEST, IDLE], [SYNCS, WRITTEN, BLOCKS])],
  };
}
