import { type ChildProcess, spawn } from 'node:child_process';
import { basename } from 'node:path';
import type { Timers } from '../core/clock.ts';
import { messageOf } from '../core/failure.ts';
import type { DeliveryResult, Hook } from './outbox.ts';

/** How long a command may run until SIGTERM, and how long after that until SIGKILL, in ms. */
interface CommandTimeouts {
  readonly run: number;
  readonly term: number;
}

const DEFAULT_TIMEOUTS: CommandTimeouts = { run: 10_000, term: 2000 };
/** How long to wait for the last output after the command has ended, in ms. */
const STDERR_GRACE = 100;
/** Characters of standard error that are kept, and those of its last line that are reported. */
const MAX_STDERR_LENGTH = 4096;
const MAX_DETAIL_LENGTH = 200;
/** The variables of the hub's environment that a command gets. */
const ENVIRONMENT_ALLOWLIST = ['PATH', 'HOME', 'LANG', 'LC_ALL', 'TZ'];

/**
 * Runs a program with the message on its standard input: without a shell, without variables that could be secret, and
 * in its own process group. All processes of that group end with the program.
 * @param command the program and its arguments
 */
export function commandHook(
  command: readonly [program: string, ...args: string[]],
  timers: Timers,
  limits: CommandTimeouts = DEFAULT_TIMEOUTS,
  env: NodeJS.ProcessEnv = process.env,
): Hook {
  const [program, ...args] = command;
  const passed = Object.fromEntries(
    ENVIRONMENT_ALLOWLIST.flatMap((name) => (env[name] === undefined ? [] : [[name, env[name]]])),
  );
  return {
    kind: 'command',
    target: basename(program),
    async deliver(message, signal) {
      try {
        const stdio: ['pipe', 'ignore', 'pipe'] = ['pipe', 'ignore', 'pipe'];
        const child = spawn(program, args, { env: passed, cwd: '/', detached: true, stdio });
        return await waitForExit(child, message, timers, limits, signal);
      } catch (error) {
        // Node throws for some errors of the machine, such as too little memory, instead of emitting an event.
        return { ok: false, detail: `could not be run: ${describeSpawnError(error)}`, retryable: true };
      }
    },
  };
}

async function waitForExit(
  child: ChildProcess,
  message: string,
  timers: Timers,
  { run, term }: CommandTimeouts,
  signal: AbortSignal,
): Promise<DeliveryResult> {
  const ended = Promise.withResolvers<string | null>();
  let isTimedOut = false;
  let stderr = '';
  child.stderr?.setEncoding('utf8').on('data', (text: string) => {
    stderr = (stderr + text).slice(-MAX_STDERR_LENGTH);
  });
  child.stderr?.on('error', () => undefined);
  // A program that does not read its input is not an error.
  child.stdin?.on('error', () => undefined);
  child.stdin?.end(message);
  child.once('error', (error) => ended.resolve(`could not be run: ${describeSpawnError(error)}`));
  child.once('exit', (code, killedBy) =>
    ended.resolve(code === 0 ? null : killedBy === null ? `exited with status ${code}` : `was killed by ${killedBy}`),
  );
  let disarmKill: () => void = () => undefined;
  const stop = () => {
    signalProcessGroup(child, 'SIGTERM');
    disarmKill();
    disarmKill = timers.after(term, () => signalProcessGroup(child, 'SIGKILL'));
  };
  const disarm = timers.after(run, () => {
    isTimedOut = true;
    stop();
  });
  signal.addEventListener('abort', stop, { once: true });
  if (signal.aborted) stop();
  const failure = await ended.promise;
  disarm();
  disarmKill();
  signal.removeEventListener('abort', stop);
  // Now and not later: only while a process of the group exists can no other group get its id.
  signalProcessGroup(child, 'SIGKILL');
  if (failure !== null) await timers.sleep(STDERR_GRACE);
  child.stdin?.destroy();
  child.stderr?.destroy();
  if (failure === null && !isTimedOut) return { ok: true, detail: 'done', retryable: false };
  const reason = isTimedOut ? `did not end within ${run / 1000} s` : (failure ?? '');
  const output = lastLine(stderr);
  return { ok: false, detail: output === '' ? reason : `${reason}: ${output}`, retryable: true };
}

function signalProcessGroup({ pid }: ChildProcess, signal: NodeJS.Signals): void {
  if (pid === undefined) return;
  try {
    process.kill(-pid, signal);
  } catch {
    // No process of the group is left.
  }
}

/** The last line that is not blank, without control characters. */
function lastLine(text: string): string {
  const lines = text.split(/[\r\n]+/).filter((line) => line.trim() !== '');
  const last = (lines.at(-1) ?? '').trim();
  return last.replaceAll(/[\p{Cc}\p{Cf}\p{Co}\p{Cs}]/gu, '\u{fffd}').slice(0, MAX_DETAIL_LENGTH);
}

/** Leaves out the arguments, which may be secret. */
function describeSpawnError(error: unknown): string {
  if (!(error instanceof Error && 'code' in error)) return messageOf(error);
  if (error.code === 'ENOENT') return 'the program does not exist';
  return error.code === 'EACCES' ? 'this user is not permitted to run it' : String(error.code);
}
