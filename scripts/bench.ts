// The portal emulator beside its like, in one run: interleaved rounds, the server on core 0, the load on core 1.
import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempDisposableSync, readFileSync, writeFileSync } from 'node:fs';
import { loadavg, tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { FIRST, type Measured, median, page, picture, type Round } from './bench-report.ts';
import { NAMES, type Server, startServer, type Target, warmUp } from './bench-servers.ts';

const root = join(import.meta.dirname, '..');
const { tokens } = parseArgs({ strict: false, tokens: true, options: { quick: { type: 'boolean' } } });
for (const token of tokens) {
  const known =
    token.kind === 'option'
      ? token.rawName === '--quick' && token.value === undefined
      : token.kind === 'positional' && token.value === 'emulator';
  if (known) continue;
  const found = token.kind === 'option' ? token.rawName : token.kind === 'positional' ? token.value : '--';
  console.error(`scripts/bench: found ${found}; allowed are --quick and emulator`);
  process.exit(2);
}
const quick = tokens.some(({ kind }) => kind === 'option');
const CHAINS = 16;
const ROUNDS = quick ? 1 : 5;
const STARTS = quick ? 1 : 5;
const WARM_UP = quick ? 0.2 : 1;
const SECONDS = quick ? 0.5 : 3;

const began = new Date();
const loadBefore = loadavg()[0] ?? 0;
using caches = mkdtempDisposableSync(join(tmpdir(), 'latchkey-bench-'));
const warm = join(caches.path, 'warm');
await warmUp(warm);

interface Start {
  readonly startUp: number;
  readonly startCpu: number;
  readonly memory: number;
}
const starts = new Map<string, Start[]>();
for (let i = 0; i < STARTS; i += 1) {
  for (const name of NAMES) await measureStart(name, name, warm);
  // A process that is killed keeps nothing, so each of these is a first start.
  await measureStart(FIRST, 'emulator', join(caches.path, 'cold'));
}

async function measureStart(label: string, name: (typeof NAMES)[number], cache: string): Promise<void> {
  await using server = await startServer(name, 0, cache);
  await sleep(quick ? 50 : 500);
  const { startUp, startCpu } = server;
  starts.set(label, [...(starts.get(label) ?? []), { startUp, startCpu, memory: server.memory() }]);
}

const rounds: Round[] = [];
const measured: Measured[] = [];
{
  await using running = new AsyncDisposableStack();
  const servers: Server[] = [];
  for (const name of NAMES) servers.push(running.use(await startServer(name, CHAINS, warm)));
  for (let round = 0; round < ROUNDS; round += 1) {
    // Another one begins each round, so that none always runs on a warmed-up machine.
    const order = servers.map((_, index) => servers[(index + round) % servers.length] ?? raise('no servers'));
    for (const what of ['refresh', 'poll'] as const) {
      for (const server of order) {
        const target = server[what];
        if (target !== null) rounds.push(load(server, what, target, round));
      }
    }
  }
  for (const [name, own] of starts) {
    measured.push({
      name,
      startUp: own.map((start) => start.startUp),
      startCpu: own.map((start) => start.startCpu),
      memoryIdle: own.map((start) => start.memory),
      memoryAfter: servers.find((server) => server.name === name)?.memory() ?? null,
    });
  }
}

for (const what of ['refresh', 'poll'] as const) {
  for (const name of NAMES) {
    const own = rounds.filter((round) => round.server === name && round.what === what);
    if (own.length === 0) continue;
    const rate = median(own.map((round) => round.rate));
    console.log(
      `${what.padEnd(8)} ${name.padEnd(20)} ${Math.round(rate)}/s, ${median(own.map((r) => r.cpu)).toFixed(1)} µs`,
    );
  }
}
for (const { name, startUp, memoryIdle, memoryAfter } of measured) {
  const [start, idle] = [median(startUp).toFixed(0), median(memoryIdle).toFixed(0)];
  const after = memoryAfter === null ? '' : `, after the load ${memoryAfter.toFixed(0)} MB`;
  console.log(`start    ${name.padEnd(20)} ${start} ms, ${idle} MB${after}`);
}
if (!quick) {
  const load = [loadBefore, loadavg()[0] ?? 0] as const;
  const results = { began: began.toISOString(), ended: new Date().toISOString(), load, rounds, measured };
  mkdirSync(join(root, '.cache/bench'), { recursive: true });
  const file = `.cache/bench/emulator-${began.toISOString().replaceAll(':', '-')}.json`;
  writeFileSync(join(root, file), `${JSON.stringify(results, null, 1)}\n`);
  const report = join(root, 'docs/benchmarks.md');
  // What other commands have measured stands behind this.
  const others = readFileSync(report, 'utf8').split(/^(?=## arm64 under emulation$)/m)[1] ?? '';
  writeFileSync(report, `${page(results, { rounds: ROUNDS, seconds: SECONDS, chains: CHAINS })}\n${others}`);
  mkdirSync(join(root, 'docs/images'), { recursive: true });
  writeFileSync(join(root, 'docs/images/bench-emulator.svg'), picture(results));
  console.log(`docs/benchmarks.md and ${file} are written`);
}

/** One round of load on a server; its refresh tokens move on. */
function load(server: Server, what: Round['what'], target: Target, round: number): Round {
  const cpuBefore = server.cpu();
  const job = JSON.stringify({ ...target, warmUp: WARM_UP, seconds: SECONDS });
  const said = execFileSync('taskset', ['-c', '1', process.execPath, 'scripts/bench.d/load.js', job], { cwd: root });
  const result = JSON.parse(said.toString()) as Load;
  if (result.errors > 0) throw new Error(`${server.name}, ${what}: ${result.errors} bad answers, as ${result.example}`);
  target.tokens = result.tokens;
  const { rate, p50, p99, sent, driverCpu } = result;
  const cpu = (1000 * (server.cpu() - cpuBefore)) / sent;
  return { server: server.name, what, round, rate, p50, p99, cpu, driverCpu };
}

interface Load extends Pick<Round, 'rate' | 'p50' | 'p99' | 'driverCpu'> {
  readonly sent: number;
  readonly errors: number;
  readonly example: string | null;
  readonly tokens: string[];
}

function raise(message: string): never {
  throw new Error(message);
}
