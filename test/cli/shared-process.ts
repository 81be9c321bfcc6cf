import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { appendFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Readable } from 'node:stream';
import { scaleDeadline } from '../support/deadlines.ts';
import { logFile } from '../support/logs.ts';
import { SHARED_CACHE } from '../support/program.ts';
import type { SharedProcessCommand } from './shared-process-worker.ts';

/** How a command ended, with its output. */
export interface CliResult {
  readonly status: number | null;
  readonly signal: NodeJS.Signals | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** The shared process; `gone` rejects when it ends. */
interface SharedProcess {
  readonly child: ChildProcess;
  readonly exited: Promise<never>;
  readonly log: string;
}

/** The longest time that a command takes on an idle machine. */
const MAX_COMMAND_MS = 10_000;

let shared: SharedProcess | undefined;
let last: Promise<unknown> = Promise.resolve();

/**
 * Runs a command of the built program in a shared process, after the commands that were requested before. Starting a
 * process takes ten times as long as running a command.
 * @throws Error if the command hangs or ends the process
 */
export function runInSharedProcess(command: SharedProcessCommand): Promise<CliResult> {
  const ended = last.then(() => runNow(command));
  last = ended.catch(() => undefined);
  return ended;
}

async function runNow(command: SharedProcessCommand): Promise<CliResult> {
  shared ??= start();
  const { child, exited, log } = shared;
  child.send(command);
  // A command that hangs would block all later ones.
  const deadline = setTimeout(() => child.kill('SIGKILL'), scaleDeadline(MAX_COMMAND_MS));
  const over = Promise.all([once(child, 'message'), untilMark(child.stdout), untilMark(child.stderr)]);
  const [[status], stdout, stderr] = await Promise.race([over, exited]);
  clearTimeout(deadline);
  appendFileSync(log, stderr);
  return { status, signal: null, stdout, stderr };
}

function start(): SharedProcess {
  const child = fork(join(import.meta.dirname, 'shared-process-worker.ts'), {
    env: { NODE_COMPILE_CACHE: join(SHARED_CACHE, 'latchkey') },
    stdio: ['pipe', 'pipe', 'pipe', 'ipc'],
    execArgv: [],
  });
  const exited = once(child, 'exit').then(([status, signal]) => {
    shared = undefined;
    throw new Error(`the command hung, or ended its process (${status ?? signal}): start one of its own for it`);
  });
  exited.catch(() => undefined);
  return { child, exited, log: logFile('latchkey-stderr') };
}

/** The output of a stream up to the next NUL. */
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
