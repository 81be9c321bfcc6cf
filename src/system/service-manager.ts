import { spawn } from 'node:child_process';
import type { Timers } from '../core/clock.ts';
import { systemTimers } from './clock.ts';

/** systemd's own program: Node has no datagram sockets of the kind that NOTIFY_SOCKET names. */
const PROGRAM = '/usr/bin/systemd-notify';
/** One that has not ended after so long is ended, in ms; by itself it waits 5 s for systemd. */
const PROGRAM_TIMEOUT = 10_000;

/** What is told, in the words of sd_notify(3). */
interface Message {
  readonly assignments: readonly string[];
  /** Of several that wait only the newest of such a kind is told. */
  readonly kind: 'state' | 'status' | 'watchdog';
}

/** What {@link ServiceManager} takes, where it is not what is on every machine. */
export interface ServiceManagerOptions {
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
export class ServiceManager {
  /** Whether somebody listens: the daemon was started by systemd, or something that does as it does. */
  readonly listens: boolean;
  /** How often the watchdog is to be fed at least, in ms; null where there is none. */
  readonly watchdog: number | null;
  readonly #env: NodeJS.ProcessEnv;
  readonly #program: string;
  readonly #timers: Timers;
  readonly #waiting: Message[] = [];
  #telling = false;

  constructor({ env = process.env, program = PROGRAM, timers = systemTimers }: ServiceManagerOptions = {}) {
    const socket = env['NOTIFY_SOCKET'];
    this.listens = socket !== undefined && socket !== '';
    this.watchdog = this.listens ? watchdogOf(env) : null;
    this.#env = { NOTIFY_SOCKET: socket };
    // Other programs that the daemon runs would tell systemd of their own failures as if they were its.
    delete env['NOTIFY_SOCKET'];
    this.#program = program;
    this.#timers = timers;
  }

  /** The daemon is up, or up again after {@link reloading}. */
  ready(status: string): void {
    this.#tell('state', 'READY=1', `STATUS=${line(status)}`);
  }

  /** The daemon takes another configuration over. */
  reloading(): void {
    this.#tell('state', 'RELOADING=1', `MONOTONIC_USEC=${process.hrtime.bigint() / 1000n}`);
  }

  stopping(): void {
    this.#tell('state', 'STOPPING=1', 'STATUS=Stopping');
  }

  /** In words for people. */
  status(status: string): void {
    this.#tell('status', `STATUS=${line(status)}`);
  }

  feedWatchdog(): void {
    this.#tell('watchdog', 'WATCHDOG=1');
  }

  #tell(kind: Message['kind'], ...assignments: string[]): void {
    if (!this.listens) return;
    const older = kind === 'state' ? -1 : this.#waiting.findIndex((message) => message.kind === kind);
    if (older >= 0) this.#waiting.splice(older, 1);
    this.#waiting.push({ kind, assignments });
    if (!this.#telling) void this.#tellAll();
  }

  async #tellAll(): Promise<void> {
    this.#telling = true;
    for (let next = this.#waiting.shift(); next !== undefined; next = this.#waiting.shift()) {
      await this.#run(next.assignments);
    }
    this.#telling = false;
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
function watchdogOf(env: NodeJS.ProcessEnv): number | null {
  const microseconds = Number(env['WATCHDOG_USEC']);
  const meant = env['WATCHDOG_PID'];
  if (!(microseconds > 0) || (meant !== undefined && Number(meant) !== process.pid)) return null;
  return microseconds / 1000;
}

/** A message's parts are lines. */
function line(text: string): string {
  return text.replaceAll(/\s+/g, ' ');
}
