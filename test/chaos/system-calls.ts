import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** How long strace may take to exit, in ms. */
const TRACER_EXIT_TIMEOUT_MS = 3000;

/** Whether system calls can be traced on this machine: strace is installed and may trace other processes. */
export function canTraceSystemCalls(): boolean {
  return spawnSync('strace', ['-o', '/dev/null', 'true']).status === 0;
}

/** The environment of a process in which strace can count syncs: it counts the calls of each thread separately. */
export const ONE_POOL_THREAD: NodeJS.ProcessEnv = { UV_THREADPOOL_SIZE: '1' };

/**
 * Kills a process with SIGKILL when it enters its n-th system call of a kind, counted from now on. The call itself is
 * not executed; all calls before it are complete.
 * @param calls names of system calls; each one is counted separately
 * @param when n, from 1
 * @param paths only calls on these files count; empty: all calls count
 * @returns when strace is attached; disposing of it detaches strace
 */
export async function killBeforeSystemCall(
  pid: number,
  calls: readonly string[],
  when: number,
  paths: readonly string[],
): Promise<AsyncDisposable> {
  const set = calls.join(',');
  const only = paths.flatMap((path) => ['-P', path]);
  return watch(pid, [
    '-o',
    '/dev/null',
    '-e',
    `trace=${set}`,
    '-e',
    `inject=${set}:signal=SIGKILL:when=${when}`,
    ...only,
  ]);
}

/**
 * Lets syncs of a process fail with EIO, as on a card that breaks, from its n-th `fdatasync` on, counted from now.
 * @returns when strace is attached; disposing of it ends the failures
 */
export function failSyncs(pid: number, from = 1): Promise<AsyncDisposable> {
  return watch(pid, ['-o', '/dev/null', '-e', 'trace=fdatasync', '-e', `inject=fdatasync:error=EIO:when=${from}+`]);
}

/** A traced system call: its name, its file or socket, and the number of bytes to write. */
export interface SystemCall {
  readonly name: string;
  readonly on: string;
  readonly bytes: number;
}

/**
 * Traces the calls of these kinds that a process makes during `work`: syncs in the order in which they end, all others
 * in the order in which they begin.
 */
export async function traceSystemCalls(
  pid: number,
  calls: readonly string[],
  work: () => Promise<void>,
): Promise<SystemCall[]> {
  const folder = await mkdtemp(join(tmpdir(), 'latchkey-calls-'));
  const file = join(folder, 'calls');
  try {
    {
      // Without contents, because written data may contain secrets.
      await using _watch = await watch(pid, ['-o', file, '-y', '-s', '0', '-e', `trace=${calls.join(',')}`]);
      await work();
    }
    return parseSystemCalls(await readFile(file, 'utf8'));
  } finally {
    await rm(folder, { recursive: true });
  }
}

/** The calls of a log of strace with the options `-f`, `-y` and `-s 0`, in the order of {@link traceSystemCalls}. */
export function parseSystemCalls(log: string): SystemCall[] {
  const syncs = new Map<string, SystemCall>();
  return log.split('\n').flatMap((line) => {
    const [, resumed = ''] = /^(\d+) +<\.\.\. f\w*sync resumed>/.exec(line) ?? [];
    const ended = syncs.get(resumed);
    if (ended !== undefined) return [ended];
    const [, thread = '', name, on, bytes = 0] = /^(\d+) +(\w+)\(\d+<([^>]*)>(?:, ""\.*, (\d+))?/.exec(line) ?? [];
    if (name === undefined || on === undefined) return [];
    const call = { name, on, bytes: Number(bytes) };
    if (!name.endsWith('sync') || !line.endsWith('<unfinished ...>')) return [call];
    syncs.set(thread, call);
    return [];
  });
}

/** Attaches strace to a process. @returns when it is attached; disposing of it detaches strace */
async function watch(pid: number, options: readonly string[]): Promise<AsyncDisposable> {
  const strace = spawn('strace', ['-f', '-p', String(pid), '-e', 'signal=none', ...options], {
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  const ended = once(strace, 'exit');
  let output = '';
  await new Promise<void>((resolve, reject) => {
    strace.stderr.on('data', (piece) => {
      output += piece;
      if (/attached/.test(output)) resolve();
    });
    strace.once('exit', () => reject(new Error(`strace ended: ${output}`)));
    strace.once('error', reject);
  });
  return {
    async [Symbol.asyncDispose]() {
      // SIGINT makes strace detach. If the process was killed, strace has usually ended already, but sometimes it
      // hangs.
      strace.kill('SIGINT');
      const hung = setTimeout(() => strace.kill('SIGKILL'), TRACER_EXIT_TIMEOUT_MS);
      await ended;
      clearTimeout(hung);
    },
  };
}
