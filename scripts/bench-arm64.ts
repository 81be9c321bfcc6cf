// The package for arm64 under emulation beside this machine's own, in turn: how long a hub takes to start, and its memory.
import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, mkdtempDisposableSync, readFileSync } from 'node:fs';
import { loadavg, tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { setTimeout as sleep } from 'node:timers/promises';
import { arm64Root, emulated } from '../test/support/arm64.ts';
import { median } from './bench.d/statistics.ts';

const rounds = Number(process.argv[2] ?? 3);
if (!Number.isInteger(rounds) || rounds < 1 || rounds > 100) {
  console.error('scripts/bench-arm64: allowed is a number of rounds, 1 to 100');
  process.exit(2);
}
const load = loadavg()[0] ?? 0;
using scratch = mkdtempDisposableSync(join(tmpdir(), 'latchkey-arm64-'));
const root = await arm64Root();

const own = unpack('own');
const arm64 = unpack('arm64', '--arm64');
const NODE = 'usr/lib/latchkey/bin/node';
const commands: Readonly<Record<string, readonly string[]>> = {
  'this machine, native': [join(own, NODE), '--max-semi-space-size=1', join(own, 'usr/lib/latchkey/dist/main.js')],
  'arm64, emulated': [
    ...emulated(root, join(arm64, NODE)),
    '--max-semi-space-size=1',
    join(arm64, 'usr/lib/latchkey/dist/main.js'),
  ],
};

/** What one start of `latchkey serve --test-mode` has cost; times in ms, memory in MB. */
interface Start {
  readonly wall: number;
  readonly cpu: number;
  readonly resident: number;
}

const starts = new Map<string, Start[]>();
// The first round warms the files and the compiled code up.
for (let round = -1; round < rounds; round += 1) {
  for (const [name, command] of Object.entries(commands)) {
    const figures = await start(name, command);
    if (round >= 0) starts.set(name, [...(starts.get(name) ?? []), figures]);
  }
}
console.log('| | listening, ms | processor, ms | resident, MB |\n|---|---|---|---|');
for (const [name, figures] of starts) {
  const cell = (pick: (start: Start) => number) => {
    const values = figures.map(pick);
    return `${median(values).toFixed(0)} (${Math.min(...values).toFixed(0)}–${Math.max(...values).toFixed(0)})`;
  };
  console.log(`| ${name} | ${cell((s) => s.wall)} | ${cell((s) => s.cpu)} | ${cell((s) => s.resident)} |`);
}
console.log(
  `\nMedians of ${rounds} rounds, in brackets the lowest and the highest; ${process.arch}; load average ${load.toFixed(1)} before, ${(loadavg()[0] ?? 0).toFixed(1)} after.`,
);

/** @returns the folder of the unpacked package */
function unpack(name: string, ...options: string[]): string {
  const file = execFileSync(join(import.meta.dirname, 'test-deb'), options)
    .toString()
    .trim();
  const folder = join(scratch.path, name);
  execFileSync('dpkg-deb', ['--extract', file, folder]);
  return folder;
}

async function start(name: string, [program = '', ...args]: readonly string[]): Promise<Start> {
  const home = join(scratch.path, `home of ${name}`);
  mkdirSync(home, { recursive: true });
  const lan = { LATCHKEY_LAN_ADDRESS: '127.0.0.1', LATCHKEY_LAN_LISTEN: '127.0.0.1', LATCHKEY_LAN_MDNS: 'false' };
  const ports = { LATCHKEY_LAN_HTTP_PORT: '0', LATCHKEY_LAN_HTTPS_PORT: '0' };
  const before = performance.now();
  const child = spawn(program, [...args, 'serve', '--test-mode'], {
    env: { PATH: process.env['PATH'], HOME: home, MALLOC_ARENA_MAX: '2', ...lan, ...ports },
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  const ended = once(child, 'exit');
  const said: string[] = [];
  for await (const line of createInterface({ input: child.stderr })) {
    said.push(line);
    if (line.includes('"hub started"')) break;
  }
  const wall = performance.now() - before;
  if (child.exitCode !== null || child.pid === undefined) throw new Error(`${name} ended: ${said.join('\n')}`);
  const fields = readFileSync(`/proc/${child.pid}/stat`, 'utf8').split(') ')[1]?.split(' ') ?? [];
  const cpu = 10 * (Number(fields[11]) + Number(fields[12]));
  await sleep(2000);
  const resident = /VmRSS:\s+(\d+) kB/.exec(readFileSync(`/proc/${child.pid}/status`, 'utf8'))?.[1];
  // In good order, which is when compiled code is kept.
  child.kill('SIGTERM');
  await ended;
  return { wall, cpu, resident: Number(resident) / 1024 };
}
