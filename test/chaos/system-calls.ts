import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** strace is given so long to end, in ms. */
const TRACER_EXIT_TIMEOUT_MS = 3000;

/** Whether processes can be stopped at their system calls here: strace is installed and may look into other processes. */
export function canTraceSystemCalls(): boolean {
  return spawnSync('strace', ['-o', '/dev/null', 'true']).status === 0;
}

/**
 * Kills a process with SIGKILL as it enters its so-manieth system call of a kind, from now on. The call itself is not
 * executed: of the calls before it everything is done, of this one and those after it nothing.
 * @param calls each kind is counted by itself
 * @param when from 1
 * @param paths only calls on these files count; empty: all do
 * @returns when the process is watched; disposing of it lets the process go on unwatched
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

/** A system call that was made: its name, the file or socket that it was made on, and the bytes that it was to write. */
export interface SystemCall {
  readonly name: string;
  readonly on: string;
  readonly bytes: number;
}

/** The calls of these kinds that a process makes while `work` goes on, in their order. */
export async function traceSystemCalls(
  pid: number,
  calls: readonly string[],
  work: () => Promise<void>,
): Promise<SystemCall[]> {
  const folder = await mkdtemp(join(tmpdir(), 'latchkey-calls-'));
  const file = join(folder, 'calls');
  try {
    {
      // No contents: what is written may be a secret.
      await using _watch = await watch(pid, ['-o', file, '-y', '-s', '0', '-e', `trace=${calls.join(',')}`]);
      await work();
    }
    const lines = (await readFile(file, 'utf8')).split('\n');
    return lines.flatMap((line) => {
      const [, name, on, bytes = 0] = /^\d+ +(\w+)\(\d+<([^>]*)>(?:, ""\.*, (\d+))?/.exec(line) ?? [];
      return name === undefined || on === undefined ? [] : [{ name, on, bytes: Number(bytes) }];
    });
  } finally {
    await rm(folder, { recursive: true });
  }
}

/** Watches a process with strace. @returns when it is watched; disposing of it lets the process go on unwatched */
async function watch(pid: number, options: readonly string[]): Promise<AsyncDisposable> {
  const strace = spawn('strace', ['-f', '-p', String(pid), '-e', 'signal=none', ...options], {
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  const ended = once(strace, 'exit');
  let said = '';
  await new Promise<void>((resolve, reject) => {
    strace.stderr.on('data', (piece) => {
      said += piece;
      if (/attached/.test(said)) resolve();
    });
    strace.once('exit', () => reject(new Error(`strace ended: ${said}`)));
    strace.once('error', reject);
  });
  return {
    async [Symbol.asyncDispose]() {
      // Told to end it lets the process go; where that was killed, it has mostly ended by itself, and sometimes waits on.
      strace.kill('SIGINT');
      const hung = setTimeout(() => strace.kill('SIGKILL'), TRACER_EXIT_TIMEOUT_MS);
      await ended;
      clearTimeout(hung);
    },
  };
}
