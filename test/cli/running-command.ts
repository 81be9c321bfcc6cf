import type { ChildProcess } from 'node:child_process';
import { EventEmitter, once } from 'node:events';
import { appendFileSync } from 'node:fs';
import { logFile } from '../support/logs.ts';

/** How a command ended, with its output. */
export interface CliResult {
  readonly status: number | null;
  readonly signal: NodeJS.Signals | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** A running command. */
export interface RunningCommand {
  /** The process that gets its signals and its input. */
  readonly process: ChildProcess;
  readonly ended: Promise<CliResult>;
  /** Resolves when the output so far matches; rejects if the command ends before. */
  stdout(pattern: RegExp): Promise<string>;
  stderr(pattern: RegExp): Promise<string>;
  /** Types a text when the output so far matches. @returns how the command ended */
  reply(question: RegExp, text: string): Promise<CliResult>;
}

/** How a command ended, without its output. */
export type CommandEnd = Pick<CliResult, 'status' | 'signal'>;

/**
 * Follows the output of a command, up to a NUL on each of its streams that has one. Its standard error goes into the
 * tests' logs.
 * @param end resolves when the command has ended. `marked` resolves when there was a NUL on all streams
 */
export function watchCommand(
  child: ChildProcess,
  end: (marked: Promise<unknown>) => Promise<CommandEnd>,
  streams: readonly ('stdout' | 'stderr')[] = ['stdout', 'stderr'],
): RunningCommand {
  const written = { stdout: '', stderr: '' };
  const changed = new EventEmitter();
  const log = logFile('latchkey-stderr');
  const follow = (name: 'stdout' | 'stderr') =>
    new Promise<void>((resolve) => {
      const take = (piece: string) => {
        const [text = '', ...after] = piece.split('\0');
        written[name] += text;
        if (name === 'stderr') appendFileSync(log, text);
        changed.emit('written');
        if (after.length === 0) return;
        child[name]?.off('data', take);
        resolve();
      };
      child[name]?.setEncoding('utf8').on('data', take);
    });
  let isOver = false;
  const ended = end(Promise.all(streams.map(follow))).then((how) => ({ ...how, ...written }));
  // A test that fails before it looks at the end reports its own failure.
  ended
    .catch(() => undefined)
    .then(() => {
      isOver = true;
      changed.emit('written');
    });
  async function seen(name: 'stdout' | 'stderr', pattern: RegExp): Promise<string> {
    while (!pattern.test(written[name])) {
      if (isOver) throw new Error(`it ended before ${pattern}: ${JSON.stringify(written)}`);
      await once(changed, 'written');
    }
    return written[name];
  }
  return {
    process: child,
    ended,
    stdout: (pattern) => seen('stdout', pattern),
    stderr: (pattern) => seen('stderr', pattern),
    async reply(question, text) {
      await seen('stdout', question);
      child.stdin?.write(text);
      return ended;
    },
  };
}
