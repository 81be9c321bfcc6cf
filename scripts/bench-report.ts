// What scripts/bench writes for people: docs/benchmarks.md and its picture.
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { cpus } from 'node:os';
import { join } from 'node:path';

/** One server under one kind of load for some seconds. */
export interface Round {
  readonly server: string;
  readonly what: 'refresh' | 'poll';
  readonly round: number;
  /** Answers a second. */
  readonly rate: number;
  /** Milliseconds. */
  readonly p50: number;
  readonly p99: number;
  /** The server's processor time for one request, in microseconds; of the warm-up too. */
  readonly cpu: number;
  /** How busy the load's own core was, 0 to 1. */
  readonly driverCpu: number;
}

/** What was measured of a server beside its load. */
export interface Measured {
  readonly name: string;
  /** Milliseconds from the start of the process to its first line, which says where it listens. */
  readonly startUp: readonly number[];
  /** The processor time of that, in milliseconds. */
  readonly startCpu: readonly number[];
  /** MB resident, half a second after that. */
  readonly memoryIdle: readonly number[];
  /** MB resident after all rounds; null where it took no part in them. */
  readonly memoryAfter: number | null;
}

export interface Results {
  readonly began: string;
  readonly ended: string;
  /** The machine's load average over a minute, before and after. */
  readonly load: readonly [number, number];
  readonly rounds: readonly Round[];
  readonly measured: readonly Measured[];
}

/** The emulator when it is started for the first time: it finds no compiled code. */
export const FIRST = 'emulator, first start';

const root = join(import.meta.dirname, '..');

/** The middle value; of an even number of values the upper one. */
export function median(values: readonly number[]): number {
  return values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? Number.NaN;
}

/** docs/benchmarks.md */
export function page(results: Results, how: { rounds: number; seconds: number; chains: number }): string {
  const { began, ended, load, measured } = results;
  const emulator = measured.find(({ name }) => name === 'emulator');
  return `# Benchmarks

The portal emulator beside its like, as \`./scripts/bench emulator\` measured it from ${began} to ${ended}.
All of it down to the start-up is one run of that command, which writes it here; the raw figures go to \`.cache/bench/\`.

- Machine: ${cpus().length} × ${cpus()[0]?.model ?? 'unknown'}; Linux ${uname()}; Node ${process.versions.node}.
- ${['oidc-provider', 'oauth2-mock-server', 'fastify'].map((name) => `${name} ${version(name)}`).join(', ')} (locked in
  \`scripts/bench.d/package-lock.json\`).
${busy(load)}- Every server is a process of its own on core 0, the load is one on core 1 (\`taskset\`). All servers stay up and are
  loaded in turn: ${how.rounds} rounds of ${how.seconds} s each after 1 s of warming up, a round beginning with another server each time.
- ${how.chains} connections, one request at a time on each, over raw sockets. Every refresh presents the refresh token that the
  answer before gave, so rotation is really done where there is any. A single bad answer would end the run.
- Figures are medians of the rounds, in brackets the lowest and the highest. *Processor* is the server's own time for one
  request (\`/proc/PID/stat\`): what is left when other work on the machine takes turns with it.

![Processor time of one refresh](images/bench-emulator.svg)

## Targets

${targets(results)}

## POST /sso/token, grant_type=refresh_token

${table(results, 'refresh')}

oidc-provider rotates (\`rotateRefreshToken: true\`) in its in-memory adapter and signs no ID token here (no scope
\`openid\`). oauth2-mock-server signs an RS256 access token, checks no refresh token and rotates none. The bare
fastify server reads the form and answers a constant. The emulator keeps its log of requests and all that a judge counts.

## GET /external/oauth2helper/code/get, nobody has logged in yet

${table(results, 'poll')}

The emulator checks the signature of a state when it first comes, and its client and expiry every time; the bare fastify server answers a constant. The others have no such
endpoint.

## Start-up and memory

| | start-up | × | processor | resident when idle | × | after the run |
|---|---|---|---|---|---|---|
${measured
  .map((one) => {
    const start = ratio(median(one.startUp), median(emulator?.startUp ?? []));
    const idle = ratio(median(one.memoryIdle), median(emulator?.memoryIdle ?? []));
    const after = one.memoryAfter === null ? '' : `${one.memoryAfter.toFixed(0)} MB`;
    return `| ${one.name} | ${spread(one.startUp, 0)} ms | ${start} | ${spread(one.startCpu, 0)} ms | ${spread(one.memoryIdle, 0)} MB | ${idle} | ${after} |`;
  })
  .join('\n')}

Start-up is from the start of the process to the line that says where it listens. The emulator's is that of the whole
command line, \`latchkey emulator\`, which keeps its compiled code for the next start; that of the others is the least
that serves. × is beside the emulator's.
`;
}

/** What the emulator is meant to reach, and whether it does. */
function targets({ rounds, measured }: Results): string {
  const of = (what: Round['what'], server: string, figure: 'rate' | 'cpu') =>
    median(rounds.filter((round) => round.what === what && round.server === server).map((round) => round[figure]));
  const faster = (what: Round['what'], peer: string, wanted: number) => {
    const rate = of(what, 'emulator', 'rate') / of(what, peer, 'rate');
    const cpu = of(what, peer, 'cpu') / of(what, 'emulator', 'cpu');
    const kind = what === 'refresh' ? 'refreshes' : 'polls of code/get';
    return `| ${kind} a second: at least ${wanted} × ${peer}'s | ${rate.toFixed(2)} × (by processor time ${cpu.toFixed(2)} ×) | ${met(rate >= wanted)} |`;
  };
  const lowest = (figure: 'startUp' | 'memoryIdle', unit: string, words: string) => {
    const [own = Number.NaN, ...peers] = ['emulator', 'oidc-provider', 'oauth2-mock-server'].map((name) =>
      median(measured.find((one) => one.name === name)?.[figure] ?? []),
    );
    const least = Math.min(...peers);
    return `| ${words}: below both peers' (${least.toFixed(0)} ${unit}) | ${own.toFixed(0)} ${unit} | ${met(own < least)} |`;
  };
  return [
    '| target | measured | |',
    '|---|---|---|',
    faster('refresh', 'oidc-provider', 5),
    faster('refresh', 'bare fastify', 0.5),
    faster('poll', 'bare fastify', 0.5),
    lowest('startUp', 'ms', 'start-up'),
    lowest('memoryIdle', 'MB', 'resident when idle'),
  ].join('\n');
}

function met(reached: boolean): string {
  return reached ? 'met' : '**not met**';
}

function table({ rounds }: Results, what: Round['what']): string {
  const all = rounds.filter((round) => round.what === what);
  const base = all.filter(({ server }) => server === 'emulator');
  const lines = [...new Set(all.map(({ server }) => server))].sort(first('emulator')).map((server) => {
    const own = all.filter((round) => round.server === server);
    const of = (name: 'rate' | 'p50' | 'p99' | 'cpu' | 'driverCpu') => own.map((round) => round[name]);
    const times = ratio(median(base.map(({ rate }) => rate)), median(of('rate')));
    const cpuTimes = ratio(median(of('cpu')), median(base.map(({ cpu }) => cpu)));
    return `| ${server} | ${spread(of('rate'), 0)} | ${times} | ${spread(of('p50'), 2)} | ${spread(of('p99'), 2)} | ${spread(of('cpu'), 0)} | ${cpuTimes} | ${(100 * median(of('driverCpu'))).toFixed(0)} % |`;
  });
  return `| | requests/s | emulator is × | p50, ms | p99, ms | processor, µs | emulator is × | load's core busy |
|---|---|---|---|---|---|---|---|
${lines.join('\n')}`;
}

/** The bench alone keeps two processes busy at most. */
function busy([before, after]: Results['load']): string {
  const [from, to] = [before.toFixed(1), after.toFixed(1)];
  if (Math.max(before, after) < 3) return `- The load average was ${from} before and ${to} after.\n`;
  return `- **Other work kept the machine busy** (load average ${from} before, ${to} after): requests a second and latencies then say
  little, since whoever gets the core is chance; compare the processor times, and run it again on a quiet machine.
`;
}

function first(name: string): (a: string, b: string) => number {
  return (a, b) => Number(b === name) - Number(a === name);
}

function spread(values: readonly number[], digits: number): string {
  const [low, high] = [Math.min(...values), Math.max(...values)].map((value) => value.toFixed(digits));
  return `${median(values).toFixed(digits)} (${low}–${high})`;
}

function ratio(value: number, to: number): string {
  return (value / to).toFixed(2);
}

/** docs/images/bench-emulator.svg: the processor time of one refresh as bars, which other work on the machine moves least. */
export function picture({ rounds }: Results): string {
  const names = [...new Set(rounds.map(({ server }) => server))].sort(first('emulator'));
  const times = names.map((name) =>
    median(rounds.filter(({ server, what }) => server === name && what === 'refresh').map(({ cpu }) => cpu)),
  );
  const bars = names.map((name, index) => {
    const [time = 0, y] = [times[index], 40 + 34 * index];
    const width = Math.max(1, (380 * time) / Math.max(...times)).toFixed(1);
    const colour = name === 'emulator' ? '#1a7f64' : '#8a94a0';
    return `  <text x="150" y="${y + 16}" text-anchor="end">${name}</text>
  <rect x="160" y="${y}" width="${width}" height="22" fill="${colour}"/>
  <text x="${168 + Number(width)}" y="${y + 16}">${Math.round(time)}</text>`;
  });
  const height = 50 + 34 * names.length;
  return `<svg xmlns="http://www.w3.org/2000/svg" width="640" height="${height}" font-family="sans-serif" font-size="14">
  <rect width="640" height="${height}" fill="#fff"/>
  <text x="20" y="24" font-weight="bold">Processor time of one refresh, µs (shorter is better)</text>
${bars.join('\n')}
</svg>
`;
}

function uname(): string {
  return execFileSync('uname', ['-rm']).toString().trim();
}

function version(name: string): string {
  const manifest = readFileSync(join(root, 'scripts/bench.d/node_modules', name, 'package.json'), 'utf8');
  return (JSON.parse(manifest) as { version: string }).version;
}
