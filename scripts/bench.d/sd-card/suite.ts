import { setTimeout as sleep } from 'node:timers/promises';
import { prepareHub } from '../hub.ts';
import { median } from '../statistics.ts';
import {
  absoluteTarget,
  type BenchOptions,
  type BenchSubject,
  findMeasurement,
  type Measurement,
  MeasurementCollector,
  type Report,
  runRounds,
  type Suite,
  type Target,
} from '../suite.ts';
import { type SdCardBench, startSdCardBench, sumCalls, type WriteStatistics } from './bench-hub.ts';

const APPLIANCES = 10;
/** Characters of a token: the emulator's, and a large signed token. */
const TOKENS = [81, 1800] as const;
/** A token with a lifetime of one hour is refreshed after 48 minutes. */
const REFRESHES_A_DAY = 30;
const KB = 1000;

const HAND_OUT = 'token request';
const IDLE = 'idle minute';
const PAIRING = 'pairing';
const SNAPSHOT = 'nightly snapshot';
const DAY = 'a day';
const alone = (characters: number) => `refresh, tokens of ${characters} characters`;
const together = (characters: number) =>
  `one of ${APPLIANCES} refreshes due together, tokens of ${characters} characters`;

/** How much the hub writes, and how often it waits until that is on the SD card. */
export const sdCardSuite: Suite = {
  name: 'sd-card',
  title: 'Writes to the SD card',
  programs: { strace: 'strace' },
  measure,
  report,
};

async function measure(bench: BenchOptions): Promise<Measurement[]> {
  const measured = new MeasurementCollector();
  await runRounds(bench.quick ? 1 : 3, bench.subjects, async (subject, round) => {
    for (const characters of TOKENS) {
      bench.progress(`sd-card: ${subject.name}, tokens of ${characters} characters, round ${round + 1}`);
      const longer = characters - TOKENS[0];
      const prepare = (options: Parameters<typeof prepareHub>[1] = {}) => prepareHub(subject, options);
      await using home = await startSdCardBench(prepare, APPLIANCES, { longer, onDisk: true });
      await refreshes(home, subject, characters, bench.quick, measured);
      if (longer === 0) await others(home, subject, bench.quick, measured);
    }
  });
  return measured.all;
}

/**
 * A WAL checkpoint occurs every few dozen refreshes: there are so many refreshes that their mean includes checkpoints.
 */
async function refreshes(
  home: SdCardBench,
  { name }: BenchSubject,
  characters: number,
  quick: boolean,
  measured: MeasurementCollector,
) {
  const times = quick ? 1 : 15;
  let count = 0;
  const one = await home.watched(async () => {
    for (let time = 0; time < times; time += 1) count += await home.refreshEach();
  });
  add(measured, alone(characters), name, one, count);
  count = 0;
  const many = await home.watched(async () => {
    for (let time = 0; time < times; time += 1) count += await home.refreshTogether();
  });
  add(measured, together(characters), name, many, count);
}

async function others(home: SdCardBench, { name }: BenchSubject, quick: boolean, measured: MeasurementCollector) {
  const handOuts = quick ? 20 : 1000;
  add(measured, HAND_OUT, name, await home.watched(() => home.handOut(handOuts)), handOuts);
  add(measured, IDLE, name, await home.watched(() => sleep(quick ? 2000 : 60_000)), 1);
  const { calls } = await home.watched(() => home.pair());
  const begun = calls.findIndex(({ on }) => on.includes('.copy'));
  add(measured, PAIRING, name, sumCalls(calls.slice(0, begun)), 1);
  const snapshot = sumCalls(calls.slice(begun));
  add(measured, SNAPSHOT, name, snapshot, 1);
  const value = (what: string) => findMeasurement(measured.all, what, name).values.at(-1) ?? Number.NaN;
  const daily = (what: string) => APPLIANCES * REFRESHES_A_DAY * value(`${alone(TOKENS[0])}: ${what}`);
  measured.add(`${DAY}: synced`, name, 'times', daily('synced') + snapshot.syncs);
  measured.add(`${DAY}: to the kernel`, name, 'kB', daily('to the kernel') + snapshot.bytes / KB);
}

function add(
  measured: MeasurementCollector,
  what: string,
  of: string,
  written: Partial<WriteStatistics> & ReturnType<typeof sumCalls>,
  by: number,
) {
  measured.add(`${what}: synced`, of, 'times', written.syncs / by);
  measured.add(`${what}: to the kernel`, of, 'kB', written.bytes / KB / by);
  if (written.blocks !== undefined) measured.add(`${what}: in blocks`, of, 'kB', written.blocks / KB / by);
  if (written.onDisk !== undefined) measured.add(`${what}: on ext4`, of, 'kB', written.onDisk / KB / by);
}

function report(measured: readonly Measurement[]): Report {
  const of = (what: string) => median(findMeasurement(measured, what, 'latchkey').values);
  return { targets: targets(of), tables: tables(measured, of) };
}

function targets(of: (what: string) => number): Target[] {
  const [short] = TOKENS;
  return [
    absoluteTarget('syncs per refresh: at most 3', of(`${alone(short)}: synced`), '', 3, 2),
    ...TOKENS.map((characters) =>
      absoluteTarget(
        `a refresh with tokens of ${characters} characters: at most 16 kB`,
        of(`${alone(characters)}: to the kernel`),
        'kB',
        16,
      ),
    ),
    absoluteTarget('a token request writes nothing', of(`${HAND_OUT}: to the kernel`), 'kB', 0),
    absoluteTarget('a token request waits for no sync', of(`${HAND_OUT}: synced`), '', 0),
    absoluteTarget(
      `syncs of ${APPLIANCES} refreshes that are due together: fewer than ${APPLIANCES}`,
      APPLIANCES * of(`${together(short)}: synced`),
      '',
      APPLIANCES - 1,
    ),
  ];
}

function tables(measured: readonly Measurement[], of: (what: string) => number): string[] {
  const row = (what: string) => {
    const cells = ['synced', 'to the kernel', 'in blocks', 'on ext4'].map((kind) => {
      const values = measured.find((one) => one.what === `${what}: ${kind}` && one.of === 'latchkey')?.values;
      return values === undefined ? '' : median(values).toFixed(values.every(Number.isInteger) ? 0 : 2);
    });
    return `| ${[what, ...cells].join(' | ')} |`;
  };
  const refreshes = TOKENS.flatMap((characters) => [alone(characters), together(characters)]);
  const rows = [...refreshes, PAIRING, SNAPSHOT, HAND_OUT, IDLE].map(row);
  const head = ['| | syncs | to the kernel, kB | in blocks, kB | on ext4, kB |', '|---|---|---|---|---|'];
  const syncs = of(`${DAY}: synced`).toFixed(0);
  const megabytes = (of(`${DAY}: to the kernel`) / KB).toFixed(1);
  const work = `${APPLIANCES * REFRESHES_A_DAY} single refreshes and the nightly snapshot`;
  const day = `**A day** with ${APPLIANCES} appliances and tokens that live an hour: ${work} take ${syncs} syncs and ${megabytes} MB to the kernel.`;
  return [[...head, ...rows].join('\n'), day];
}
