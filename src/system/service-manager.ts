import { execFile } from 'node:child_process';
import { promisify } from 'node:util';

const run = promisify(execFile);

/** systemd's own program: Node has no datagram sockets of the kind that NOTIFY_SOCKET names. */
const PROGRAM = '/usr/bin/systemd-notify';
/** One that has not ended after so long is ended, in ms; by itself it waits 5 s for systemd. */
const PROGRAM_TIMEOUT = 10_000;

/** What {@link ServiceManager} takes, where it is not what is on every machine. */
export interface ServiceManagerOptions {
  /** Loses `NOTIFY_SOCKET`. */
  readonly env?: NodeJS.ProcessEnv;
  /** The program that speaks for the daemon. */
  readonly program?: string;
  /** How long it may take, in ms. */
  readonly timeout?: number;
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
  readonly #timeout: number;
  #told: Promise<void> = Promise.resolve();

  constructor({ env = process.env, program = PROGRAM, timeout = PROGRAM_TIMEOUT }: ServiceManagerOptions = {}) {
    const socket = env['NOTIFY_SOCKET'];
    this.listens = socket !== undefined && socket !== '';
    this.watchdog = this.listens ? watchdogOf(env) : null;
    this.#env = { NOTIFY_SOCKET: socket };
    // Other programs that the daemon runs would tell systemd of their own failures as if they were its.
    delete env['NOTIFY_SOCKET'];
    this.#program = program;
    this.#timeout = timeout;
  }

  /** The daemon is up, or up again after {@link reloading}. */
  ready(status: string): void {
    this.#tell('READY=1', `STATUS=${line(status)}`);
  }

  /** The daemon takes another configuration over. */
  reloading(): void {
    this.#tell('RELOADING=1', `MONOTONIC_USEC=${process.hrtime.bigint() / 1000n}`);
  }

  stopping(): void {
    this.#tell('STOPPING=1', 'STATUS=Stopping');
  }

  /** In words for people. */
  status(status: string): void {
    this.#tell(`STATUS=${line(status)}`);
  }

  feedWatchdog(): void {
    this.#tell('WATCHDOG=1');
  }

  #tell(...assignments: string[]): void {
    if (!this.listens) return;
    this.#told = this.#told.then(async () => {
      try {
        await run(this.#program, assignments, { env: this.#env, timeout: this.#timeout, killSignal: 'SIGKILL' });
      } catch {
        // It could not be started, has failed, or hung.
      }
    });
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
