import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';

/** Whether processes can be stopped at their system calls here: strace is installed and may look into other processes. */
export function canStopAtCalls(): boolean {
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
export async function killBefore(
  pid: number,
  calls: readonly string[],
  when: number,
  paths: readonly string[],
): Promise<AsyncDisposable> {
  const set = calls.join(',');
  const strace = spawn(
    'strace',
    [
      ...['-f', '-p', String(pid), '-o', '/dev/null', '-e', 'signal=none'],
      ...['-e', `trace=${set}`, '-e', `inject=${set}:signal=SIGKILL:when=${when}`],
      ...paths.flatMap((path) => ['-P', path]),
    ],
    { stdio: ['ignore', 'ignore', 'pipe'] },
  );
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
      // Told to end it lets the process go; where that was killed, it has ended by itself.
      strace.kill('SIGINT');
      await ended;
    },
  };
}
