// Ways to package the program, side by side: a process at a time on the first core, each round in another order.
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { copyFileSync, mkdirSync, mkdtempDisposableSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { loadavg, tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { setTimeout as sleep } from 'node:timers/promises';
import { median } from './bench.d/statistics.ts';
import { bundle } from './deb.d/bundle.ts';

const root = join(import.meta.dirname, '..');
const rounds = Number(process.argv[2] ?? 9);
if (!Number.isInteger(rounds) || rounds < 1 || rounds > 100) {
  console.error('scripts/bench-packaging: allowed is a number of rounds, 1 to 100');
  process.exit(2);
}

using scratch = mkdtempDisposableSync(join(tmpdir(), 'latchkey-packaging-'));
const bundled = join(scratch.path, 'bundle/dist/main.js');
await bundle(root, process.arch === 'arm64' ? 'arm64' : 'x64', join(scratch.path, 'bundle/dist'));
copyFileSync(join(root, 'package.json'), join(scratch.path, 'bundle/package.json'));

/** One way to run the program. */
interface Way {
  readonly name: string;
  readonly main: string;
  readonly cache: boolean;
  readonly flags: readonly string[];
  readonly arenas: boolean;
}

const built = join(root, 'dist/main.js');
const SEMI = '--max-semi-space-size=1';
const ways: readonly Way[] = [
  { name: 'modules', main: built, cache: false, flags: [], arenas: false },
  { name: 'modules, warm cache', main: built, cache: true, flags: [], arenas: false },
  { name: 'bundle', main: bundled, cache: false, flags: [], arenas: false },
  { name: 'bundle, warm cache', main: bundled, cache: true, flags: [], arenas: false },
  { name: `… ${SEMI}`, main: bundled, cache: true, flags: [SEMI], arenas: false },
  { name: '… and MALLOC_ARENA_MAX=2', main: bundled, cache: true, flags: [SEMI], arenas: true },
  { name: '… and --optimize-for-size', main: bundled, cache: true, flags: [SEMI, '--optimize-for-size'], arenas: true },
  { name: '… and --lite-mode', main: bundled, cache: true, flags: [SEMI, '--lite-mode'], arenas: true },
];

const config = join(scratch.path, 'latchkey.toml');
writeFileSync(join(scratch.path, 'portal.secret'), 'bench-secret', { mode: 0o600 });
writeFileSync(
  config,
  `[lan]
http_port = 0
https_port = 0
address = "127.0.0.1"
listen = ["127.0.0.1"]
mdns = false
[metrics]
listen = ""
[portals.home]
base_url = "http://127.0.0.1:9"
frontend_url = "http://127.0.0.1:9"
client_id = "6a8f8d0e-3a34-4d6e-9d43-0b5d3c1f1a01"
client_secret_file = "portal.secret"
`,
);
const state = join(scratch.path, 'state');
mkdirSync(state, { mode: 0o700 });

/** A command with what it says when it is ready. */
interface Command {
  readonly args: readonly string[];
  readonly stream: 'stdout' | 'stderr';
  readonly ready: RegExp;
}

const commands: Readonly<Record<string, Command>> = {
  serve: { args: ['--config', config, 'serve'], stream: 'stderr', ready: /"event":"hub started"/ },
  emulator: { args: ['emulator', '--json'], stream: 'stdout', ready: /"base_url"/ },
};

/** What one start has cost; times in ms, memory in MB. */
interface Start {
  readonly wall: number;
  readonly cpu: number;
  readonly resident: number;
  /** Of the resident memory, what is not a file's: node's own code is shared with the disk's cache. */
  readonly own: number;
}

async function start(way: Way, command: Command): Promise<Start> {
  const before = performance.now();
  const child = spawn('taskset', ['-c', '0', process.execPath, ...way.flags, way.main, ...command.args], {
    env: {
      ...process.env,
      STATE_DIRECTORY: state,
      RUNTIME_DIRECTORY: state,
      XDG_CACHE_HOME: join(scratch.path, way.name),
      ...(!way.cache && { NODE_DISABLE_COMPILE_CACHE: '1' }),
      ...(way.arenas && { MALLOC_ARENA_MAX: '2' }),
    },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const ended = once(child, 'exit');
  await ready(child, command);
  const wall = performance.now() - before;
  const pid = child.pid ?? 0;
  const cpu = processorTime(pid);
  await sleep(2000);
  const status = readFileSync(`/proc/${pid}/status`, 'utf8');
  const kilobytes = (key: string) => Number(new RegExp(`${key}:\\s+(\\d+) kB`).exec(status)?.[1]);
  const figures = { wall, cpu, resident: kilobytes('VmRSS') / 1024, own: kilobytes('RssAnon') / 1024 };
  // In good order, which is when compiled code is kept.
  child.kill('SIGTERM');
  await ended;
  return figures;
}

async function ready(child: ChildProcess, { stream, ready }: Command): Promise<void> {
  const output = child[stream];
  child[stream === 'stdout' ? 'stderr' : 'stdout']?.resume();
  if (output === null) throw new Error('no output to read');
  const said: string[] = [];
  for await (const line of createInterface({ input: output })) {
    said.push(line);
    if (ready.test(line)) {
      output.resume();
      return;
    }
  }
  throw new Error(`it ended before it was ready: ${said.join('\n')}`);
}

/** Of all threads so far, in ms: with the scheduler's own precision. */
function processorTime(pid: number): number {
  const of = (thread: string) => Number(readFileSync(`/proc/${pid}/task/${thread}/schedstat`, 'utf8').split(' ')[0]);
  return readdirSync(`/proc/${pid}/task`).reduce((sum, thread) => sum + of(thread), 0) / 1e6;
}

const load = loadavg()[0] ?? 0;
for (const [name, command] of Object.entries(commands)) {
  const starts = new Map<Way, Start[]>(ways.map((way) => [way, []]));
  // The first round warms the caches up, and the state directory.
  for (let round = -1; round < rounds; round += 1) {
    for (let turn = 0; turn < ways.length; turn += 1) {
      const way = ways[(turn + round + 1) % ways.length];
      if (way === undefined) continue;
      const figures = await start(way, command);
      if (round >= 0) starts.get(way)?.push(figures);
    }
  }
  console.log(
    `\n| \`${name}\` | ready, ms | processor, ms | resident, MB | of that its own, MB |\n|---|---|---|---|---|`,
  );
  for (const [way, own] of starts) {
    const cell = (pick: (start: Start) => number) => {
      const figures = own.map(pick);
      return `${median(figures).toFixed(0)} (${Math.min(...figures).toFixed(0)}–${Math.max(...figures).toFixed(0)})`;
    };
    const cells = [
      cell(({ wall }) => wall),
      cell(({ cpu }) => cpu),
      cell(({ resident }) => resident),
      cell((s) => s.own),
    ];
    console.log(`| ${way.name} | ${cells.join(' | ')} |`);
  }
}
console.log(
  `\nMedians of ${rounds} rounds, in brackets the lowest and the highest; Node ${process.versions.node}, ${process.arch}; load average ${load.toFixed(1)} before, ${(loadavg()[0] ?? 0).toFixed(1)} after.`,
);
