import { type ChildProcess, spawn } from 'node:child_process';
import { basename } from 'node:path';
import type { Timers } from '../core/clock.ts';
import { messageOf } from '../core/failure.ts';
import type { DeliveryResult, Hook } from './outbox.ts';

/** How long a command may take, and then how long after SIGTERM until SIGKILL, in ms. */
export interface CommandTimeouts {
  readonly run: number;
  readonly term: number;
}

const DEFAULT_TIMEOUTS: CommandTimeouts = { run: 10_000, term: 2000 };
/** After its end, so long for what it said last to come through, in ms. */
const STDERR_GRACE = 100;
/** Characters of standard error that are kept; and of its last line, those that are reported. */
const MAX_STDERR_LENGTH = 4096;
const MAX_DETAIL_LENGTH = 200;
/** What a command gets of the hub's environment. */
const ENVIRONMENT_ALLOWLIST = ['PATH', 'HOME', 'LANG', 'LC_ALL', 'TZ'];

/**
 * Runs a program with the message on its standard input: no shell, nothing of the hub's environment that could be secret,
 * in a process group of its own. Whatever it has started there ends with it.
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
        // Of some faults of the machine, such as too little memory, Node makes no event.
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
  let tooLong = false;
  let said = '';
  child.stderr?.setEncoding('utf8').on('data', (text: string) => {
    said = (said + text).slice(-MAX_STDERR_LENGTH);
  });
  child.stderr?.on('error', () => undefined);
  // One that does not read it is no fault.
  child.stdin?.on('error', () => undefined);
  child.stdin?.end(message);
  child.once('error', (error) => ended.resolve(`could not be run: ${describeSpawnError(error)}`));
  child.once('exit', (code, killedBy) =>
    ended.resolve(code === 0 ? null : killedBy === null ? `ended with status ${code}` : `was ended by ${killedBy}`),
  );
  let disarmKill: () => void = () => undefined;
  const stop = () => {
    signalProcessGroup(child, 'SIGTERM');
    disarmKill();
    disarmKill = timers.after(term, () => signalProcessGroup(child, 'SIGKILL'));
  };
  const disarm = timers.after(run, () => {
    tooLong = true;
    stop();
  });
  signal.addEventListener('abort', stop, { once: true });
  if (signal.aborted) stop();
  const fault = await ended.promise;
  disarm();
  disarmKill();
  signal.removeEventListener('abort', stop);
  // Here and not later: while anything of the group lives, no other group has its number.
  signalProcessGroup(child, 'SIGKILL');
  if (fault !== null) await timers.sleep(STDERR_GRACE);
  child.stdin?.destroy();
  child.stderr?.destroy();
  if (fault === null && !tooLong) return { ok: true, detail: 'done', retryable: false };
  const why = tooLong ? `did not end within ${run / 1000} s` : (fault ?? '');
  const lastWords = lastLine(said);
  return { ok: false, detail: lastWords === '' ? why : `${why}: ${lastWords}`, retryable: true };
}

function signalProcessGroup({ pid }: ChildProcess, signal: NodeJS.Signals): void {
  if (pid === undefined) return;
  try {
    process.kill(-pid, signal);
  } catch {
    // Nothing of it is left.
  }
}

/** The last line that says anything, fit for a log. */
function lastLine(text: string): string {
  const lines = text.split(/[\r\n]+/).filter((line) => line.trim() !== '');
  const last = (lines.at(-1) ?? '').trim();
  return last.replaceAll(/[\p{Cc}\p{Cf}\p{Co}\p{Cs}]/gu, '\u{fffd}').slice(0, MAX_DETAIL_LENGTH);
}

/** Without the arguments, which may be secret. */
function describeSpawnError(error: unknown): string {
  if (!(error instanceof Error && 'code' in error)) return messageOf(error);
  if (error.code === 'ENOENT') return 'there is no such program';
  return error.code === 'EACCES' ? 'this user may not run it' : String(error.code);
}
