import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { appendFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Readable } from 'node:stream';
import { scaleDeadline } from '../support/deadlines.ts';
import { logFile } from '../support/logs.ts';
import { SHARED_CACHE } from '../support/program.ts';
import type { SharedProcessCommand } from './kept-process.ts';

/** How a command ended, with all that it wrote. */
export interface CliResult {
  readonly status: number | null;
  readonly signal: NodeJS.Signals | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** The process that is kept, and what rejects when it ends. */
interface Kept {
  readonly child: ChildProcess;
  readonly gone: Promise<never>;
  readonly log: string;
}

/** What a command takes at the very most on a quiet machine. */
const MAX_COMMAND_MS = 10_000;

let kept: Kept | undefined;
let last: Promise<unknown> = Promise.resolve();

/**
 * Runs a command of the built program to its end, after those that were asked for before, in a process that is kept for
 * the next one: to start one takes ten times what a command does.
 * @throws Error where the command hangs or ends the process
 */
export function runInSharedProcess(command: SharedProcessCommand): Promise<CliResult> {
  const ended = last.then(() => runNow(command));
  last = ended.catch(() => undefined);
  return ended;
}

async function runNow(command: SharedProcessCommand): Promise<CliResult> {
  kept ??= start();
  const { child, gone, log } = kept;
  child.send(command);
  // One that hangs would keep all others waiting.
  const deadline = setTimeout(() => child.kill('SIGKILL'), scaleDeadline(MAX_COMMAND_MS));
  const over = Promise.all([once(child, 'message'), untilMark(child.stdout), untilMark(child.stderr)]);
  const [[status], stdout, stderr] = await Promise.race([over, gone]);
  clearTimeout(deadline);
  appendFileSync(log, stderr);
  return { status, signal: null, stdout, stderr };
}

function start(): Kept {
  const child = fork(join(import.meta.dirname, 'kept-process.ts'), {
    env: { NODE_COMPILE_CACHE: join(SHARED_CACHE, 'latchkey') },
    stdio: ['pipe', 'pipe', 'pipe', 'ipc'],
    execArgv: [],
  });
  const gone = once(child, 'exit').then(([status, signal]) => {
    kept = undefined;
    throw new Error(`the command hung, or ended its process (${status ?? signal}): start one of its own for it`);
  });
  gone.catch(() => undefined);
  return { child, gone, log: logFile('latchkey-stderr') };
}

/** What a stream gives before the next NUL. */
function untilMark(stream: Readable | null): Promise<string> {
  return new Promise((resolve) => {
    let text = '';
    const take = (piece: string) => {
      text += piece;
      if (!text.endsWith('\0')) return;
      stream?.off('data', take);
      resolve(text.slice(0, -1));
    };
    stream?.setEncoding('utf8').on('data', take);
  });
}
