import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readdirSync, readFileSync } from 'node:fs';
import { createInterface } from 'node:readline';

/** Where what is measured runs, and where its load does: each has a core of its own. */
export const SERVER_CORE = 0;
export const LOAD_CORE = 1;

/** A program that is measured, on a core of its own. */
export interface Program extends AsyncDisposable {
  readonly pid: number;
  /** The line that it was waited for. */
  readonly said: string;
  /** From its start to that line, in ms. */
  readonly startUp: number;
  /** Processor time until then, in ms. */
  readonly startCpu: number;
  /** Sends a signal and waits for the end. */
  end(signal: NodeJS.Signals): Promise<void>;
}

/**
 * Starts a program on a core and waits for the first line of its output that `ready` takes.
 * @throws Error where it ends before, with what it said
 */
export async function startProgram(
  command: readonly string[],
  options: {
    readonly core?: number;
    readonly env?: NodeJS.ProcessEnv;
    readonly cwd?: string;
    readonly ready?: (line: string) => boolean;
  } = {},
): Promise<Program> {
  const { core = SERVER_CORE, env = process.env, cwd, ready = () => true } = options;
  const before = performance.now();
  // taskset becomes the program: the process id is that of the program itself.
  const child = spawn('taskset', ['-c', String(core), ...command], { cwd, env, stdio: ['ignore', 'pipe', 'pipe'] });
  const pid = child.pid ?? 0;
  const lines: string[] = [];
  const { promise, resolve, reject } = Promise.withResolvers<string>();
  for (const input of [child.stdout, child.stderr]) {
    createInterface({ input }).on('line', (line) => {
      if (lines.length < 50) lines.push(line);
      if (ready(line)) resolve(line);
    });
  }
  child.once('error', reject);
  child.once('close', (code, signal) => {
    reject(new Error(`${command.join(' ')} ended (${code ?? signal}):\n${lines.join('\n')}`));
  });
  try {
    const said = await promise;
    const startUp = performance.now() - before;
    const startCpu = processorTime(pid);
    const stop = (signal: NodeJS.Signals) => end(child, signal);
    return { pid, said, startUp, startCpu, end: stop, [Symbol.asyncDispose]: () => stop('SIGKILL') };
  } catch (error) {
    await end(child, 'SIGKILL');
    throw error;
  }
}

async function end(child: ChildProcess, signal: NodeJS.Signals): Promise<void> {
  if (child.pid === undefined || child.exitCode !== null || child.signalCode !== null) return;
  const ended = once(child, 'exit');
  child.kill(signal);
  await ended;
}

/** Processor time of a process and all its threads so far, in ms, to the microsecond: proc(5), `schedstat`. */
export function processorTime(pid: number): number {
  const tasks = readdirSync(`/proc/${pid}/task`);
  return tasks.reduce((sum, task) => {
    try {
      return sum + Number(readFileSync(`/proc/${pid}/task/${task}/schedstat`, 'utf8').split(' ')[0]) / 1e6;
    } catch {
      // A thread that ended meanwhile.
      return sum;
    }
  }, 0);
}

/** Resident memory in MB (of 2^20 bytes), and what of it no file backs: the kernel can't drop that. */
export function residentMemory(pid: number): { readonly all: number; readonly own: number } {
  const status = readFileSync(`/proc/${pid}/status`, 'utf8');
  const of = (key: string) => Number(new RegExp(`^${key}:\\s+(\\d+) kB`, 'm').exec(status)?.[1]) / 1024;
  return { all: of('VmRSS'), own: of('RssAnon') };
}
