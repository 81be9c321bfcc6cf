import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readdirSync, readFileSync } from 'node:fs';
import { createInterface } from 'node:readline';
import { setTimeout as sleep } from 'node:timers/promises';

/** The measured program and its load each have a core of their own. */
export const SERVER_CORE = 0;
export const LOAD_CORE = 1;

/** A measured program, on its own core. */
export interface Program extends AsyncDisposable {
  readonly pid: number;
  /** The line of output that showed that it is ready. */
  readonly said: string;
  /** From its start to that line, in ms. */
  readonly startUp: number;
  /** CPU time until then, in ms. */
  readonly startCpu: number;
}

/**
 * Starts a program on the server's core and waits for a line of its output that is JSON.
 * @throws Error if it ends before that, with its output
 */
export async function startProgram(command: readonly string[], env: NodeJS.ProcessEnv): Promise<Program> {
  const before = performance.now();
  // taskset replaces itself by the program, so this is the process id of the program.
  const child = spawn('taskset', ['-c', String(SERVER_CORE), ...command], { env, stdio: ['ignore', 'pipe', 'pipe'] });
  const pid = child.pid ?? 0;
  const lines: string[] = [];
  const { promise, resolve, reject } = Promise.withResolvers<string>();
  for (const input of [child.stdout, child.stderr]) {
    createInterface({ input }).on('line', (line) => {
      if (lines.length < 50) lines.push(line);
      if (line.startsWith('{')) resolve(line);
    });
  }
  child.once('error', reject);
  child.once('close', (code, signal) => {
    reject(new Error(`${command.join(' ')} ended (${code ?? signal}):\n${lines.join('\n')}`));
  });
  const end = async () => {
    if (child.exitCode !== null || child.signalCode !== null) return;
    const ended = once(child, 'exit');
    child.kill('SIGKILL');
    await ended;
  };
  const said = await promise;
  return {
    pid,
    said,
    startUp: performance.now() - before,
    startCpu: cpuTime(pid),
    [Symbol.asyncDispose]: end,
  };
}

/** CPU time of a process with all its threads so far, in ms with a resolution of 1 µs: proc(5), `schedstat`. */
export function cpuTime(pid: number): number {
  const tasks = readdirSync(`/proc/${pid}/task`);
  return tasks.reduce((sum, task) => {
    try {
      return sum + Number(readFileSync(`/proc/${pid}/task/${task}/schedstat`, 'utf8').split(' ')[0]) / 1e6;
    } catch {
      // The thread has ended.
      return sum;
    }
  }, 0);
}

/** Resident memory in MB (of 2^20 bytes): `all` of it, and `own`, the anonymous part, which the kernel cannot drop. */
export function residentMemory(pid: number): { readonly all: number; readonly own: number } {
  const status = readFileSync(`/proc/${pid}/status`, 'utf8');
  const of = (key: string) => Number(new RegExp(`^${key}:\\s+(\\d+) kB`, 'm').exec(status)?.[1]) / 1024;
  return { all: of('VmRSS'), own: of('RssAnon') };
}

/** The activity of an idle process. */
interface IdleUsage {
  /** Wake-ups of all its threads per second. */
  readonly wakeUps: number;
  /** CPU time, including that of its child processes, as a part of one core: 0 to 1. */
  readonly busy: number;
}

/** The activity of a process since its start; times in ms. */
interface ProcessUsage {
  readonly at: number;
  readonly processor: number;
  readonly programs: number;
  /** Voluntary context switches by thread. */
  readonly waits: ReadonlyMap<string, number>;
}

/** Measures the activity of idle processes. @param duration in ms */
export async function measureIdleUsage(pids: readonly number[], duration: number): Promise<IdleUsage[]> {
  const before = pids.map(readProcessUsage);
  await sleep(duration);
  return pids.map((pid, index) => between(before[index] ?? readProcessUsage(pid), readProcessUsage(pid)));
}

function between(before: ProcessUsage, after: ProcessUsage): IdleUsage {
  const lasted = after.at - before.at;
  const waits = [...after.waits].reduce((sum, [thread, count]) => sum + count - (before.waits.get(thread) ?? 0), 0);
  const busy = after.processor - before.processor + after.programs - before.programs;
  return { wakeUps: (1000 * waits) / lasted, busy: busy / lasted };
}

/** proc(5): `task/TID/status`, `stat`. */
function readProcessUsage(pid: number): ProcessUsage {
  const threads = readdirSync(`/proc/${pid}/task`);
  return {
    at: performance.now(),
    processor: cpuTime(pid),
    programs: programTime(pid),
    waits: new Map(threads.map((thread) => [thread, waitsOf(`/proc/${pid}/task/${thread}/status`)])),
  };
}

function waitsOf(file: string): number {
  return Number(/^voluntary_ctxt_switches:\s+(\d+)/m.exec(readFileSync(file, 'utf8'))?.[1]);
}

/** CPU time of a process's children that have ended, in ms with a resolution of 10 ms. */
function programTime(pid: number): number {
  const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
  // The fields after the program's name, which may contain anything; the first one is the state, field 3.
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  return 10 * (Number(fields[16 - 3]) + Number(fields[17 - 3]));
}
