import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, openSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { scaleDeadline } from '../deadlines.ts';
import { eventually } from '../hub-process.ts';
import { childrenOf, isRunning, isStopped } from '../processes.ts';
import { AS_POSTGRES, onHost, POSTGRES_ENV, type PostgresHost, postgresProgram } from './cluster.ts';

/** How a server stops: it waits for its clients, ends their sessions, or ends without writing anything. */
export type StopMode = 'smart' | 'fast' | 'immediate';

const STOP_SIGNALS: Readonly<Record<StopMode, NodeJS.Signals>> = {
  smart: 'SIGTERM',
  fast: 'SIGINT',
  immediate: 'SIGQUIT',
};

/** The processes of a running server. They end with this process, even if it is killed. */
export class PostgresProcess {
  readonly #child: ChildProcess;
  readonly #ended: Promise<unknown>;

  private constructor(child: ChildProcess) {
    this.#child = child;
    this.#ended = once(child, 'exit').catch(() => undefined);
  }

  /**
   * Starts a server and waits until it accepts connections. That includes the recovery after a crash.
   * @param log the file to which the server's log is appended
   * @throws Error if it exits before
   */
  static async start(options: {
    readonly data: string;
    readonly settings: Readonly<Record<string, string>>;
    readonly log: string;
    readonly host?: PostgresHost | undefined;
  }): Promise<PostgresProcess> {
    const { data, settings, log, host } = options;
    const statusFile = join(data, 'postmaster.pid');
    // A killed server has left it behind, and its status would be taken for that of this server.
    rmSync(statusFile, { force: true });
    const assignments = Object.entries(settings).flatMap(([name, value]) => ['-c', `${name}=${value}`]);
    const server = ['setpriv', ...AS_POSTGRES, '--pdeathsig', 'KILL', postgresProgram('postgres'), '-D', data];
    // The first process of a pid namespace takes all others with it, even stopped ones, and shared memory is freed with
    // its namespace.
    const isolated = [...onHost(host), 'unshare', '--ipc', '--pid', '--fork', ...server, ...assignments];
    const output = openSync(log, 'a', 0o600);
    const child = spawn('setpriv', ['--pdeathsig', 'KILL', ...isolated], {
      cwd: '/',
      env: POSTGRES_ENV,
      stdio: ['ignore', output, output],
    });
    closeSync(output);
    const started = new PostgresProcess(child);
    try {
      await eventually(async () => !started.isRunning || isReady(statusFile), 60, 20);
      if (!started.isRunning) throw new Error(`PostgreSQL ended when it started; its log is ${log}`);
    } catch (error) {
      await started.kill();
      throw error;
    }
    return started;
  }

  get isRunning(): boolean {
    const { pid, exitCode, signalCode } = this.#child;
    return pid !== undefined && exitCode === null && signalCode === null;
  }

  /** The pids of the server's processes, the first one first. */
  get pids(): readonly number[] {
    const postmaster = this.#postmaster;
    return [postmaster, ...childrenOf(postmaster)];
  }

  /**
   * Stops the server and waits for its end.
   * @throws Error if it does not stop in time (then it is killed): a smart stop waits for clients, a fast one for
   * standbys, and a paused server does not stop
   */
  async stop(mode: StopMode): Promise<void> {
    if (!this.isRunning) return;
    let isLate = false;
    const timer = setTimeout(() => {
      isLate = true;
      process.kill(this.#postmaster, 'SIGKILL');
    }, scaleDeadline(15_000));
    process.kill(this.#postmaster, STOP_SIGNALS[mode]);
    await this.#ended;
    clearTimeout(timer);
    if (isLate) throw new Error(`PostgreSQL did not stop in time (${mode})`);
  }

  /** Kills the server (SIGKILL) and waits for its end. Its other processes end before the first one has ended. */
  async kill(): Promise<void> {
    if (this.isRunning) process.kill(this.#postmaster, 'SIGKILL');
    await this.#ended;
  }

  /** Stops all processes of the server (SIGSTOP); its connections stay open. */
  async pause(): Promise<void> {
    const postmaster = this.#postmaster;
    await signalAndWait([postmaster], 'SIGSTOP', isStopped);
    // It starts no further processes.
    await signalAndWait(childrenOf(postmaster), 'SIGSTOP', isStopped);
  }

  /** Resumes a paused server. */
  async resume(): Promise<void> {
    const postmaster = this.#postmaster;
    await signalAndWait([...childrenOf(postmaster), postmaster], 'SIGCONT', (pid) => !isStopped(pid));
  }

  /** The pid of the server's first process; that of its parent, which it ends with, until it has started. */
  get #postmaster(): number {
    const { pid } = this.#child;
    if (pid === undefined) throw new Error('PostgreSQL did not start');
    return childrenOf(pid)[0] ?? pid;
  }
}

/** Whether the server that writes this file (`postmaster.pid`) accepts connections. */
function isReady(statusFile: string): boolean {
  try {
    return readFileSync(statusFile, 'utf8').split('\n')[7]?.trim() === 'ready';
  } catch {
    return false; // it has not been written yet
  }
}

async function signalAndWait(pids: readonly number[], signal: NodeJS.Signals, isDone: (pid: number) => boolean) {
  for (const pid of pids.filter(isRunning)) process.kill(pid, signal);
  await eventually(async () => !pids.some((pid) => isRunning(pid) && !isDone(pid)), 15, 5);
}
