// Preloaded into a daemon: records the stalls of its event loop for loop-stalls.ts. A timer measures them, and a
// sampling profiler finds their causes.
import { appendFileSync, openSync, readSync } from 'node:fs';
import { console as inspectorConsole, type Profiler, Session } from 'node:inspector';
import { basename } from 'node:path';
import { MIN_STALL_MS, type Stall } from './loop-stalls.ts';

const TICK_MS = 2;
const SAMPLING_INTERVAL_US = 1000;
/** The duration of a profile. */
const TICKS_PER_PROFILE = 2500;
/** So many functions and so many callers of each are named as the cause. */
const MAX_FUNCTIONS = 2;
const MAX_CALLERS = 3;

/** The times of the main thread in ms: monotonic, on a processor, and waiting for one (proc(5), `/proc/pid/schedstat`). */
interface Times {
  readonly now: number;
  readonly cpu: number;
  readonly waiting: number;
}

/** A stall, and when it began and ended by the profiler's clock, in µs. */
type Measured = Omit<Stall, 'cause'> & { readonly from: number; readonly to: number };

let last: Times | null = null;

/** Does the work of a probe, which is not recorded as a stall. */
export function unrecorded(work: () => void): void {
  work();
  last = null;
}

function record(file: string): void {
  const schedstat = openSync('/proc/self/schedstat', 'r');
  const buffer = Buffer.alloc(128);
  const times = (): Times => {
    const length = readSync(schedstat, buffer, 0, buffer.length, 0);
    const [cpu = 0, waiting = 0] = buffer.toString('latin1', 0, length).split(' ').map(Number);
    return { now: Number(process.hrtime.bigint()) / 1e6, cpu: cpu / 1e6, waiting: waiting / 1e6 };
  };

  let stalls: Measured[] = [];
  const session = new Session();
  session.connect();
  session.post('Profiler.enable');
  session.post('Profiler.setSamplingInterval', { interval: SAMPLING_INTERVAL_US });
  session.on('Profiler.consoleProfileFinished', ({ params: { profile } }) => {
    const lines = stalls.map(({ from, to, ...stall }) => ({ ...stall, cause: findCause(profile, from, to) }));
    appendFileSync(file, lines.map((line) => `${JSON.stringify(line)}\n`).join(''));
    stalls = [];
  });
  let number = 0;
  inspectorConsole.profile(String(number));

  /** The next profile begins before the previous one ends, because to start the profiler takes long. */
  function nextProfile(): void {
    inspectorConsole.profile(String(number + 1));
    inspectorConsole.profileEnd(String(number));
    number += 1;
  }

  let ticks = 0;
  setInterval(() => {
    const current = times();
    const ms = last === null ? 0 : current.now - last.now - TICK_MS;
    if (last !== null && ms >= MIN_STALL_MS) {
      const { cpu, waiting } = last;
      const [from, to] = [last.now * 1000, current.now * 1000];
      stalls.push({ at: Date.now() - ms, ms, cpu: current.cpu - cpu, waiting: current.waiting - waiting, from, to });
    }
    last = current;
    ticks += 1;
    if (ticks % TICKS_PER_PROFILE === 0) unrecorded(nextProfile);
  }, TICK_MS).unref();
  process.on('exit', nextProfile);
}

/** What ran longest between two times of the profiler's clock, in µs: functions of the daemon and of what it calls. */
function findCause({ nodes, samples = [], timeDeltas = [], startTime }: Profiler.Profile, from: number, to: number) {
  const byId = new Map(nodes.map((node) => [node.id, node]));
  const parents = new Map(nodes.flatMap(({ id, children = [] }) => children.map((child) => [child, id] as const)));
  const took = new Map<string, number>();
  let at = startTime;
  for (const [index, sample] of samples.entries()) {
    at += timeDeltas[index] ?? 0;
    if (at <= from || at > to) continue;
    const stack: Profiler.ProfileNode[] = [];
    for (let id: number | undefined = sample; id !== undefined; id = parents.get(id)) {
      const node = byId.get(id);
      if (node !== undefined) stack.push(node);
    }
    const [top] = stack;
    const own = stack.filter(({ callFrame: { url } }) => url.includes('/dist/')).slice(0, MAX_CALLERS);
    const names = [...(top === undefined || own.includes(top) ? [] : [top]), ...own].map(frameName);
    const key = names.join(' < ');
    took.set(key, (took.get(key) ?? 0) + (timeDeltas[index] ?? 0));
  }
  const longest = [...took].filter(([key]) => key !== '(idle)').sort(([, a], [, b]) => b - a);
  return longest
    .slice(0, MAX_FUNCTIONS)
    .map(([names, µs]) => `${names} (${(µs / 1000).toFixed(0)} ms)`)
    .join('; ');
}

function frameName({ callFrame: { functionName, url, lineNumber } }: Profiler.ProfileNode): string {
  const name = functionName || '(anonymous)';
  return url === '' ? name : `${name} ${basename(url)}:${lineNumber + 1}`;
}

const output = process.env['LATCHKEY_TEST_STALLS'];
if (output !== undefined && process.argv.includes('serve')) record(output);
