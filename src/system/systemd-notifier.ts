import { spawn } from 'node:child_process';
import type { Timers } from '../core/clock.ts';
import { systemTimers } from './clock.ts';

/** systemd's own program: Node has no datagram sockets of the kind that NOTIFY_SOCKET names. */
const PROGRAM = '/usr/bin/systemd-notify';
/** One that has not ended after so long is ended, in ms; by itself it waits 5 s for systemd. */
const PROGRAM_TIMEOUT = 10_000;

/** What is told, in the words of sd_notify(3). */
interface NotifyMessage {
  readonly assignments: readonly string[];
  /** Of several that wait only the newest of such a kind is told. */
  readonly kind: 'state' | 'status' | 'watchdog';
}

/** What {@link SystemdNotifier} takes, where it is not what is on every machine. */
export interface SystemdNotifierOptions {
  /** Loses `NOTIFY_SOCKET`. */
  readonly env?: NodeJS.ProcessEnv;
  /** The program that speaks for the daemon. */
  readonly program?: string;
  readonly timers?: Timers;
}

/**
 * Tells systemd how the daemon stands (sd_notify(3)), one message after the other. It does nothing where nobody listens,
 * and never fails: a message that can't be told is lost.
 */
export class SystemdNotifier {
  /** Whether somebody listens: the daemon was started by systemd, or something that does as it does. */
  readonly isAvailable: boolean;
  /** How often the watchdog is to be fed at least, in ms; null where there is none. */
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
    // Other programs that the daemon runs would tell systemd of their own failures as if they were its.
    delete env['NOTIFY_SOCKET'];
    this.#program = program;
    this.#timers = timers;
  }

  /** The daemon is up, or up again after {@link reloading}. */
  ready(status: string): void {
    this.#send('state', 'READY=1', `STATUS=${toSingleLine(status)}`);
  }

  /** The daemon takes another configuration over. */
  reloading(): void {
    this.#send('state', 'RELOADING=1', `MONOTONIC_USEC=${process.hrtime.bigint() / 1000n}`);
  }

  stopping(): void {
    this.#send('state', 'STOPPING=1', 'STATUS=Stopping');
  }

  /** In words for people. */
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

  /** Resolves when the program has ended, however it did, when it could not be started, or hangs. */
  #run(assignments: readonly string[]): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    try {
      const child = spawn(this.#program, assignments, { env: this.#env, stdio: 'ignore' });
      const disarm = this.#timers.after(PROGRAM_TIMEOUT, () => {
        child.kill('SIGKILL');
        resolve();
      });
      const ended = () => {
        disarm();
        resolve();
      };
      child.once('exit', ended);
      child.once('error', ended);
    } catch {
      // Of some faults of the machine, such as too little memory, Node makes no event.
      resolve();
    }
    return promise;
  }
}

/** `WATCHDOG_PID` is whom it is meant for: a child that has the variables all the same has no watchdog. */
function readWatchdogInterval(env: NodeJS.ProcessEnv): number | null {
  const microseconds = Number(env['WATCHDOG_USEC']);
  const meant = env['WATCHDOG_PID'];
  if (!(microseconds > 0) || (meant !== undefined && Number(meant) !== process.pid)) return null;
  return microseconds / 1000;
}

/** A message's parts are lines. */
function toSingleLine(text: string): string {
  return text.replaceAll(/\s+/g, ' ');
}
