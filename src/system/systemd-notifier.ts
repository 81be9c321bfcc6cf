import { spawn } from 'node:child_process';
import type { Timers } from '../core/clock.ts';
import { systemTimers } from './clock.ts';

/** systemd's own program, because Node has no Unix datagram sockets, which NOTIFY_SOCKET needs. */
const PROGRAM = '/usr/bin/systemd-notify';
/** The program is killed if it has not ended after this time, in ms; it waits up to 5 s for systemd. */
const PROGRAM_TIMEOUT = 10_000;

/** A message of sd_notify(3). */
interface NotifyMessage {
  readonly assignments: readonly string[];
  /** A new `status` or `watchdog` message replaces a pending one of its kind. */
  readonly kind: 'state' | 'status' | 'watchdog';
}

/** The options of {@link SystemdNotifier}; the defaults suit every machine. */
interface SystemdNotifierOptions {
  /** The environment; `NOTIFY_SOCKET` is deleted from it. Default: `process.env`. */
  readonly env?: NodeJS.ProcessEnv;
  /** The program that sends the messages. Default: systemd-notify. */
  readonly program?: string;
  readonly timers?: Timers;
}

/**
 * Reports the daemon's state to systemd (sd_notify(3)), one message after the other. Without systemd it does nothing.
 * It never fails: a message that can't be sent is lost.
 */
export class SystemdNotifier {
  /** Whether systemd, or a supervisor with the same protocol, has started the daemon. */
  readonly isAvailable: boolean;
  /** The watchdog's timeout, in ms: it needs a keep-alive within this time. Null if there is no watchdog. */
  readonly watchdogInterval: number | null;
  readonly #env: NodeJS.ProcessEnv;
  readonly #program: string;
  readonly #timers: Timers;
  readonly #pendingMessages: NotifyMessage[] = [];
  #isSending = false;

  constructor({ env = process.env, program = PROGRAM, timers = systemTimers }: SystemdNotifierOptions = {}) {
    const socket = env['NOTIFY_SOCKET'];
    this.isAvailable = socket !== undefined && socket !== '';
    this.watchdogInterval = this.isAvailable ? readWatchdogInterval(env) : null;
    this.#env = { NOTIFY_SOCKET: socket };
    // Otherwise programs that the daemon runs could send messages to systemd in its name.
    delete env['NOTIFY_SOCKET'];
    this.#program = program;
    this.#timers = timers;
  }

  /** Reports that the daemon is up, or up again after {@link reloading}. @param status in words for people */
  ready(status: string): void {
    this.#send('state', 'READY=1', `STATUS=${toSingleLine(status)}`);
  }

  /** Reports that the daemon reloads its configuration. */
  reloading(): void {
    this.#send('state', 'RELOADING=1', `MONOTONIC_USEC=${process.hrtime.bigint() / 1000n}`);
  }

  stopping(): void {
    this.#send('state', 'STOPPING=1', 'STATUS=Stopping');
  }

  /** Reports the status line. @param status in words for people */
  status(status: string): void {
    this.#send('status', `STATUS=${toSingleLine(status)}`);
  }

  feedWatchdog(): void {
    this.#send('watchdog', 'WATCHDOG=1');
  }

  #send(kind: NotifyMessage['kind'], ...assignments: string[]): void {
    if (!this.isAvailable) return;
    const older = kind === 'state' ? -1 : this.#pendingMessages.findIndex((message) => message.kind === kind);
    if (older >= 0) this.#pendingMessages.splice(older, 1);
    this.#pendingMessages.push({ kind, assignments });
    if (!this.#isSending) void this.#sendPending();
  }

  async #sendPending(): Promise<void> {
    this.#isSending = true;
    for (let next = this.#pendingMessages.shift(); next !== undefined; next = this.#pendingMessages.shift()) {
      await this.#run(next.assignments);
    }
    this.#isSending = false;
  }

  /** Resolves when the program has ended or was killed, or if it could not be started. */
  #run(assignments: readonly string[]): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    try {
      const child = spawn(this.#program, assignments, { env: this.#env, stdio: 'ignore' });
      const cancelTimeout = this.#timers.after(PROGRAM_TIMEOUT, () => {
        child.kill('SIGKILL');
        resolve();
      });
      const ended = () => {
        cancelTimeout();
        resolve();
      };
      child.once('exit', ended);
      child.once('error', ended);
    } catch {
      // For some errors, such as too little memory, `spawn` throws and emits no event.
      resolve();
    }
    return promise;
  }
}

/** The watchdog is for the process of `WATCHDOG_PID`: a child that inherited the variables has none. */
function readWatchdogInterval(env: NodeJS.ProcessEnv): number | null {
  const microseconds = Number(env['WATCHDOG_USEC']);
  const pid = env['WATCHDOG_PID'];
  if (!(microseconds > 0) || (pid !== undefined && Number(pid) !== process.pid)) return null;
  return microseconds / 1000;
}

/** sd_notify(3) separates assignments by newlines. */
function toSingleLine(text: string): string {
  return text.replaceAll(/\s+/g, ' ');
}
