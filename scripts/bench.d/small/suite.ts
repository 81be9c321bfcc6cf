import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { setTimeout as sleep } from 'node:timers/promises';
import { measurementTable } from '../benchmarks-page.ts';
import { type RequestLoop, runLoad, tokenRequest } from '../load.ts';
import { PEER_CLIENT, startPeer, writeTlsOptions } from '../peers.ts';
import { cpuTime, LOAD_CORE, measureIdleUsage, residentMemory } from '../program.ts';
import { median, ratioOf } from '../statistics.ts';
import {
  absoluteTarget,
  type BenchOptions,
  findMeasurement,
  type Measurement,
  MeasurementCollector,
  type Report,
  ratioTarget,
  runRounds,
  type Suite,
} from '../suite.ts';
import { openSmallMachineBench, type SmallMachineBench } from './bench-hub.ts';

const APPLIANCES = 10;
/** Connections of the load. */
const CHAINS = 16;

const NODE = 'bare node';
const FASTIFY = 'bare fastify';

const START = 'start';
const START_CPU = 'start: CPU time';
const FIRST_TOKEN = 'first token';
const IDLE = 'resident memory when idle';
const IDLE_OWN = `${IDLE}, anonymous`;
const LOADED = 'resident memory after the load';
const LOADED_OWN = `${LOADED}, anonymous`;
/** The time in which V8 releases memory of the start, and the time after it. */
const SETTLING = 'minutes 2 to 4';
const IDLING = 'idle';
const BUSY = 'CPU';
const WAKE_UPS = 'wake-ups';
const NEIGHBOURS = 'on a network of its own';

/** Durations in s. Token requests are sent in batches of `piece` seconds, until at least `handOuts` were sent. */
const FULL = { warmUp: 60, settling: 180, idle: 120, handOuts: 100_000, piece: 2, rest: 2 };
const QUICK: typeof FULL = { warmUp: 1, settling: 1, idle: 2, handOuts: 500, piece: 2, rest: 0.5 };

/** The resources that a nearly idle hub uses, compared with bare Node.js and fastify servers. */
export const smallSuite: Suite = {
  name: 'small',
  title: 'Memory, start and idle',
  programs: { 'systemd-notify': 'systemd', python3: 'python3' },
  measure,
  report,
};

/** A running program. */
interface Running extends AsyncDisposable {
  readonly name: string;
  readonly pid: number;
  /** From its start until it is ready, in ms. */
  readonly startUp: number;
  readonly startCpu: number;
  /** How to request tokens from it; null if it issues none. */
  readonly load: {
    readonly port: number;
    readonly chains: readonly RequestLoop[];
    readonly within: readonly string[];
  } | null;
}

async function measure(bench: BenchOptions): Promise<Measurement[]> {
  const { quick, subjects, progress } = bench;
  const measured = new MeasurementCollector();
  await using parts = new AsyncDisposableStack();
  const homes: SmallMachineBench[] = [];
  for (const subject of subjects) homes.push(parts.use(await openSmallMachineBench(subject, APPLIANCES, bench)));
  const tls = await writeTlsOptions(bench.scratch);
  const starts = [...homes.map((home) => () => startHome(home)), startNode, () => startFastify(tls)];
  // The first start fills the cache of compiled code.
  for (const home of homes) await (await startHome(home))[Symbol.asyncDispose]();

  progress('small: starts');
  await runRounds(quick ? 1 : 9, starts, async (start) => {
    await using running = await start();
    measured.add(START, running.name, 'ms', running.startUp);
    measured.add(START_CPU, running.name, 'ms', running.startCpu);
  });
  await runRounds(quick ? 1 : 9, homes, async (home) => {
    measured.add(FIRST_TOKEN, home.subject.name, 'ms', await firstToken(home));
  });
  const rounds = quick ? 1 : 3;
  for (let round = 0; round < rounds; round += 1) {
    const plan = quick ? QUICK : FULL;
    progress(`small: idle, then ${plan.handOuts} token requests: round ${round + 1} of ${rounds}`);
    await idleAndLoaded(starts, plan, measured);
  }
  for (const { subject, hasNeighbours } of homes) measured.add(NEIGHBOURS, subject.name, '', hasNeighbours ? 1 : 0);
  return measured.all;
}

/** Measures all programs idle at the same time, then each one alone under load. */
async function idleAndLoaded(
  starts: readonly (() => Promise<Running>)[],
  { warmUp, settling, idle, handOuts, piece, rest }: typeof FULL,
  measured: MeasurementCollector,
): Promise<void> {
  await using parts = new AsyncDisposableStack();
  const all: Running[] = [];
  for (const start of starts) all.push(parts.use(await start()));
  await sleep(warmUp * 1000);
  for (const one of all) addMemory(measured, [IDLE, IDLE_OWN], one);
  await addIdling(measured, SETTLING, all, settling);
  await addIdling(measured, IDLING, all, idle);
  for (const one of all) {
    if (one.load === null) continue;
    const { within, ...load } = one.load;
    const job = { ...load, warmUp: 0, seconds: piece };
    for (let sent = 0; sent < handOuts; ) sent += (await runLoad(one.name, job, within)).sent;
    await sleep(rest * 1000);
    addMemory(measured, [LOADED, LOADED_OWN], one);
  }
}

async function addIdling(
  measured: MeasurementCollector,
  when: string,
  all: readonly Running[],
  seconds: number,
): Promise<void> {
  const idling = await measureIdleUsage(
    all.map(({ pid }) => pid),
    seconds * 1000,
  );
  for (const [index, { name }] of all.entries()) {
    measured.add(`${when}: ${BUSY}`, name, '%', 100 * (idling[index]?.busy ?? Number.NaN));
    measured.add(`${when}: ${WAKE_UPS}`, name, '1/s', idling[index]?.wakeUps ?? Number.NaN);
  }
}

function addMemory(
  measured: MeasurementCollector,
  [all, own]: readonly [string, string],
  { name, pid }: Running,
): void {
  const memory = residentMemory(pid);
  measured.add(all, name, 'MB', memory.all);
  measured.add(own, name, 'MB', memory.own);
}

async function startHome({ subject, hub, fleet, within, launch }: SmallMachineBench): Promise<Running> {
  const startUp = await launch();
  const chains = Array.from({ length: CHAINS }, (_, index) => {
    const member = fleet[index % fleet.length] ?? PEER_CLIENT;
    return { request: tokenRequest(hub.httpsPort, member), expected: '"access_token"' };
  });
  return {
    name: subject.name,
    pid: hub.pid,
    startUp,
    startCpu: cpuTime(hub.pid),
    load: { port: hub.httpsPort, chains, within },
    [Symbol.asyncDispose]: () => hub.kill('SIGTERM'),
  };
}

async function startNode(): Promise<Running> {
  return { ...(await startPeer('bare-node.cjs', [])), name: NODE, load: null };
}

async function startFastify(tls: string): Promise<Running> {
  const program = await startPeer('bare-fastify-https.js', [tls]);
  const { port } = JSON.parse(program.said) as { port: number };
  const chain = { request: tokenRequest(port, PEER_CLIENT), expected: '"access_token"' };
  return { ...program, name: FASTIFY, load: { port, chains: Array(CHAINS).fill(chain), within: [] } };
}

/** From the start of the process to the first token that an appliance gets, in ms. */
async function firstToken(home: SmallMachineBench): Promise<number> {
  const { hub, fleet, within } = home;
  const job = { port: hub.httpsPort, request: tokenRequest(hub.httpsPort, fleet[0] ?? PEER_CLIENT) };
  const command = [...within, process.execPath, join(import.meta.dirname, 'first-token.js'), JSON.stringify(job)];
  const client = spawn('taskset', ['-c', String(LOAD_CORE), ...command], { stdio: ['ignore', 'pipe', 'inherit'] });
  const lines = createInterface({ input: client.stdout })[Symbol.asyncIterator]();
  await lines.next();
  const before = performance.timeOrigin + performance.now();
  await home.launch();
  const { value } = await lines.next();
  if (client.exitCode === null) await once(client, 'exit');
  await hub.kill('SIGTERM');
  return Number(value) - before;
}

function report(measured: readonly Measurement[]): Report {
  const of = (what: string, name = 'latchkey') => findMeasurement(measured, what, name);
  const names = ['latchkey', NODE, FASTIFY];
  const announced = of(NEIGHBOURS).values.every((value) => value === 1);
  return {
    targets: [
      ratioTarget(`${IDLE}: at most 1.6 × a bare Node.js that listens on HTTP`, ratioOf(of(IDLE), of(IDLE, NODE)), {
        atMost: 1.6,
      }),
      ratioTarget(
        'resident memory after 100,000 token requests: at most 1.1 × a bare fastify server after as many',
        ratioOf(of(LOADED), of(LOADED, FASTIFY)),
        { atMost: 1.1 },
      ),
      ratioTarget('start until READY: at most 3 × that of a bare Node.js', ratioOf(of(START), of(START, NODE)), {
        atMost: 3,
      }),
      absoluteTarget('idle: at most 0.1 % of a core', median(of(`${IDLING}: ${BUSY}`).values), '%', 0.1, 3),
      absoluteTarget('idle: at most 2 wake-ups per second', median(of(`${IDLING}: ${WAKE_UPS}`).values), '1/s', 2, 2),
    ],
    tables: [
      measurementTable(measured, [IDLE, IDLE_OWN, LOADED, LOADED_OWN], names),
      measurementTable(measured, [START, START_CPU, FIRST_TOKEN], names),
      measurementTable(
        measured,
        [SETTLING, IDLING].flatMap((when) => [`${when}: ${BUSY}`, `${when}: ${WAKE_UPS}`]),
        names,
      ),
      ...(announced ? [] : ['mDNS was on, but only on loopback, where the hub does not announce itself.']),
    ],
  };
}
