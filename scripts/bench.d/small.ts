import { copyFile, cp } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { startEmulator } from '../../src/emulator/index.ts';
import { HubProcess } from '../../test/support/hub-process.ts';
import { createLan, lanSkipReason } from '../../test/support/netns.ts';
import { NotifySocket } from '../../test/support/notify-socket.ts';
import { measurementTable } from './benchmarks-page.ts';
import { likeService, pairAppliances, startHub, tokenLoops } from './hub.ts';
import { type RequestLoop, runLoad } from './load.ts';
import { BARE_FASTIFY, BARE_NODE, startBareFastify, startBareNode, writeTlsOptions } from './peers.ts';
import { cpuTime, measureIdleUsage, residentMemory } from './program.ts';
import {
  absoluteTarget,
  type BenchOptions,
  type BenchSubject,
  LATCHKEY,
  type Measurements,
  type Report,
  ratioTarget,
  runRounds,
  type Suite,
} from './suite.ts';

const APPLIANCES = 10;
/** In seconds: so long that nothing is refreshed during the measurement, when the hub cannot reach the portal. */
const TOKEN_LIFETIME = 86_400;
/** The value of `WATCHDOG_USEC` that the unit's `WatchdogSec` leads to, in µs. */
const WATCHDOG = '90000000';

const START = 'start';
const START_CPU = 'start: CPU time';
const IDLE = 'resident memory when idle';
const IDLE_OWN = `${IDLE}, anonymous`;
const LOADED = 'resident memory after the load';
const LOADED_OWN = `${LOADED}, anonymous`;
const IDLE_CPU = 'idle: CPU';
const WAKE_UPS = 'idle: wake-ups';

/**
 * Durations in s; V8 releases memory of the start during `settling`. Token requests are sent in batches of `piece`
 * seconds, until at least `requests` were sent.
 */
const FULL = { warmUp: 60, settling: 180, idle: 120, requests: 100_000, piece: 2, rest: 2 };
const QUICK: typeof FULL = { warmUp: 1, settling: 0, idle: 2, requests: 500, piece: 2, rest: 0.5 };

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
  readonly pid: number;
  /** From its start until it is ready, in ms. */
  readonly startUp: number;
  readonly startCpu: number;
  readonly port: number;
  readonly loops: readonly RequestLoop[];
}

/** A program that can be started. */
interface Startable {
  readonly row: string;
  readonly of: string;
  /** A command that runs the load generator where it can reach the program. */
  readonly within?: readonly string[];
  start(): Promise<Running>;
}

async function measure(bench: BenchOptions, measured: Measurements): Promise<void> {
  const { quick, subjects, progress } = bench;
  await using parts = new AsyncDisposableStack();
  const hubs: Startable[] = [];
  for (const subject of subjects) hubs.push(await prepareSmallHub(subject, bench, parts));
  const tls = await writeTlsOptions(bench.scratch);
  const response = { access_token: '', token_type: 'Bearer', expires_in: 3540 };
  const all: Startable[] = [
    ...hubs,
    { row: BARE_NODE, of: LATCHKEY, start: startBareNode },
    { row: BARE_FASTIFY, of: LATCHKEY, start: () => startBareFastify(tls, response) },
  ];
  // The first start fills the cache of compiled code.
  for (const { start } of hubs) await (await start())[Symbol.asyncDispose]();

  progress('small: starts');
  await runRounds(quick ? 1 : 9, all, async ({ row, of, start }) => {
    await using running = await start();
    measured.add(row, START, 'ms', running.startUp, { of });
    measured.add(row, START_CPU, 'ms', running.startCpu, { of });
  });
  const rounds = quick ? 1 : 3;
  for (let round = 0; round < rounds; round += 1) {
    const plan = quick ? QUICK : FULL;
    progress(`small: idle, then ${plan.requests} token requests: round ${round + 1} of ${rounds}`);
    await measureIdleAndLoaded(all, plan, measured);
  }
}

/** Measures all programs idle at the same time, then each one alone under load. */
async function measureIdleAndLoaded(all: readonly Startable[], plan: typeof FULL, measured: Measurements) {
  await using parts = new AsyncDisposableStack();
  const running: (Startable & Running)[] = [];
  for (const one of all) running.push({ ...one, ...parts.use(await one.start()) });
  const addMemory = ([whole, own]: readonly [string, string], { row, of, pid }: Startable & Running) => {
    const memory = residentMemory(pid);
    measured.add(row, whole, 'MB', memory.all, { of });
    measured.add(row, own, 'MB', memory.own, { of });
  };
  await sleep(plan.warmUp * 1000);
  for (const one of running) addMemory([IDLE, IDLE_OWN], one);
  await sleep(plan.settling * 1000);
  const usage = await measureIdleUsage(
    running.map(({ pid }) => pid),
    plan.idle * 1000,
  );
  for (const [index, { row, of }] of running.entries()) {
    measured.add(row, IDLE_CPU, '%', 100 * (usage[index]?.busy ?? Number.NaN), { of });
    measured.add(row, WAKE_UPS, '1/s', usage[index]?.wakeUps ?? Number.NaN, { of });
  }
  for (const one of running) {
    if (one.row === BARE_NODE) continue;
    const job = { port: one.port, loops: one.loops, warmUp: 0, seconds: plan.piece };
    for (let sent = 0; sent < plan.requests; ) sent += (await runLoad(one.row, job, one.within)).sent;
    await sleep(plan.rest * 1000);
    addMemory([LOADED, LOADED_OWN], one);
  }
}

/**
 * Pairs the appliances at a hub on loopback, and copies its state to a second hub. The second one is in its own network
 * namespace if possible, because a hub on loopback has no segment on which to announce itself.
 */
async function prepareSmallHub(
  subject: BenchSubject,
  bench: BenchOptions,
  parts: AsyncDisposableStack,
): Promise<Startable> {
  const scratch = join(bench.scratch, subject.name.replaceAll(' ', '-'));
  const main = await packagedProgram(subject, join(scratch, 'package'));
  await using emulator = await startEmulator({ tokenLifetime: TOKEN_LIFETIME });
  await using first = await startHub(subject, { emulator, main });
  const appliances = await pairAppliances(first, emulator, APPLIANCES);
  await first.kill('SIGTERM');

  const skipReason = await lanSkipReason();
  if (skipReason !== null) bench.progress(`small: without mDNS: ${skipReason}`);
  const lan = skipReason === null ? parts.use(await createLan(['hub'])) : null;
  const within = lan === null ? [] : ['ip', 'netns', 'exec', lan.hosts.hub.namespace];
  const notify = parts.use(await NotifySocket.listen());
  const network = lan === null ? {} : { LATCHKEY_LAN_ADDRESS: 'auto', LATCHKEY_LAN_LISTEN: '0.0.0.0,::' };
  const service = { NOTIFY_SOCKET: notify.path, WATCHDOG_USEC: WATCHDOG, CACHE_DIRECTORY: join(scratch, 'cache') };
  const options = { emulator, main, within, metrics: '127.0.0.1:9480', env: { ...network, ...service } };
  const hub = parts.use(await HubProcess.prepare(likeService(subject, options)));
  await cp(join(first.directory, 'state'), join(hub.directory, 'state'), { recursive: true });
  return {
    row: LATCHKEY,
    of: subject.name,
    within,
    async start() {
      notify.messages.length = 0;
      const before = performance.now();
      await hub.launch();
      await notify.waitForAssignment('READY=1');
      const { pid, httpsPort: port } = hub;
      return {
        pid,
        port,
        startUp: performance.now() - before,
        startCpu: cpuTime(pid),
        loops: tokenLoops(port, appliances),
        [Symbol.asyncDispose]: () => hub.kill('SIGTERM'),
      };
    },
  };
}

/**
 * Builds the program of a subject as in its packages, with the subject's own bundler script.
 * @param folder for the program
 * @returns the path of its main.js
 */
async function packagedProgram({ root }: BenchSubject, folder: string): Promise<string> {
  const { bundle } = (await import(join(root, 'scripts/deb.d/bundle.ts'))) as typeof import('../deb.d/bundle.ts');
  await bundle(root, process.arch === 'arm64' ? 'arm64' : 'x64', join(folder, 'dist'));
  await copyFile(join(root, 'package.json'), join(folder, 'package.json'));
  return join(folder, 'dist/main.js');
}

function report(measured: Measurements): Report {
  const target = (what: string, text: string, atMost: number) =>
    ratioTarget(
      `${text}: at most ${atMost} × that of a bare fastify server`,
      measured.ratio(LATCHKEY, BARE_FASTIFY, what),
      { atMost },
    );
  const rows = [LATCHKEY, BARE_NODE, BARE_FASTIFY];
  return {
    targets: [
      target(IDLE, IDLE, 1.25),
      target(START, 'start until READY', 1.6),
      absoluteTarget('idle: at most 0.1 % of a core', measured.median(LATCHKEY, IDLE_CPU), '%', 0.1, 3),
    ],
    tables: [
      measurementTable(measured, rows, [IDLE, IDLE_OWN, LOADED, LOADED_OWN]),
      measurementTable(measured, rows, [START, START_CPU, IDLE_CPU, WAKE_UPS]),
    ],
  };
}
