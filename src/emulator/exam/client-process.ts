import { type ChildProcess, spawn } from 'node:child_process';
import { systemTimers } from '../../system/clock.ts';

/** How a program ended. */
export interface ProcessEnd {
  /** Null if a signal ended it. */
  readonly status: number | null;
  readonly signal: NodeJS.Signals | null;
}

/** Milliseconds that its output has after its end. */
const OUTPUT_TIMEOUT = 1000;
/** Characters of its output that are kept. */
const MAX_OUTPUT = 1_000_000;
/** The longest line that is looked at. */
const MAX_LINE = 10_000;

/** The last lines of its output, among which its error is searched. */
const MAX_QUOTED_LINES = 40;
/** A line that begins with an error, as Node, Python, Go, Rust and Java print it before or after a stack trace. */
const ERROR_LINE =
  /^\s*(?:Uncaught |\[cause\]: |Caused by: |Exception in thread "\S*" )?(?:[\w.$]*(?:Error|Exception)\b|(?:error|fatal|panic)\b|thread '.*' panicked)/i;

/** The statuses with which a shell says that there is no such command, or that it can't be run. */
const NOT_FOUND = [126, 127];

/** The process groups that run now. */
const running = new Set<number>();

/** Ends all programs at once, for a process that must end now. */
export function killAllClients(): void {
  for (const group of running) signalGroup(group, 'SIGKILL');
}

/** The client program, with all processes that it starts. */
export class ClientProcess {
  /** What it printed to both streams. */
  output = '';
  ended: ProcessEnd | null = null;
  /** Whether SIGTERM did not end it. */
  ignoredStop = false;
  readonly #child: ChildProcess;
  readonly #closed: Promise<void>;

  /**
   * Starts it in a process group of its own, with a file mode mask that leaves its files readable to others.
   * @param env added to the environment of this process; undefined removes a variable
   */
  constructor(
    [name = '', ...args]: readonly string[],
    env: Readonly<Record<string, string | undefined>>,
    { onLine, onChange }: { readonly onLine: (line: string) => void; readonly onChange: () => void },
  ) {
    this.#child = spawn('/bin/sh', ['-c', 'umask 022; exec "$@"', 'sh', name, ...args], {
      detached: true,
      env: { ...process.env, ...env },
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    const { pid, stdout, stderr } = this.#child;
    if (pid !== undefined) running.add(pid);
    for (const stream of [stdout, stderr]) this.#read(stream, onLine);
    this.#closed = new Promise((resolve) => {
      const end = (status: number | null, signal: NodeJS.Signals | null) => {
        if (this.ended !== null) return;
        this.ended = { status, signal };
        resolve();
        onChange();
      };
      this.#child.on('exit', (status, signal) => {
        if (pid !== undefined) {
          signalGroup(pid, 'SIGKILL');
          running.delete(pid);
        }
        // A process that left the group keeps its output open.
        systemTimers.after(OUTPUT_TIMEOUT, () => end(status, signal));
      });
      this.#child.on('close', end);
      this.#child.on('error', () => end(null, null));
    });
  }

  /** Whether the shell could not start it. */
  get wasNotFound(): boolean {
    return NOT_FOUND.includes(this.ended?.status ?? 0);
  }

  /** How it ended, with its last error or else the last line that it printed, as the end of a sentence. */
  get endText(): string {
    const { status, signal } = this.ended ?? {};
    const how = signal ? `was ended by ${signal}` : `ended with status ${status}`;
    const lines = this.output.split('\n').slice(-MAX_QUOTED_LINES);
    const error = lines.findLast((line) => ERROR_LINE.test(line));
    const last = error ?? lines.findLast((line) => /\w/.test(line) && !line.startsWith('Node.js v'));
    if (last === undefined) return how;
    return `${how} (its ${error === undefined ? 'last line' : 'error'}: ${last.trim().slice(0, 200)})`;
  }

  /** Asks it to stop, and ends it if it does not. @param timeout milliseconds until that */
  async stop(timeout: number): Promise<void> {
    if (this.ended !== null) return;
    this.#signal('SIGTERM');
    const done = new AbortController();
    await Promise.race([this.#closed.then(() => done.abort()), systemTimers.sleep(timeout, done.signal)]);
    if (this.ended === null) this.ignoredStop = true;
    await this.kill();
  }

  /** Ends it at once, like a power failure. */
  async kill(): Promise<void> {
    this.#signal('SIGKILL');
    await this.#closed;
  }

  #signal(signal: NodeJS.Signals): void {
    if (this.ended === null && this.#child.pid !== undefined) signalGroup(this.#child.pid, signal);
  }

  #read(stream: NodeJS.ReadableStream | null, onLine: (line: string) => void): void {
    let rest = '';
    stream?.setEncoding('utf8').on('data', (text: string) => {
      this.output = (this.output + text).slice(-MAX_OUTPUT);
      const lines = (rest + text).split('\n');
      rest = (lines.pop() ?? '').slice(-MAX_LINE);
      for (const line of lines) onLine(line.slice(0, MAX_LINE));
    });
  }
}

function signalGroup(group: number, signal: NodeJS.Signals): void {
  try {
    process.kill(-group, signal);
  } catch {
    // It has ended.
  }
}
