import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface, type Interface } from 'node:readline';
import { scaleDeadline } from './deadlines.ts';

/** Why no service manager can be notified on this machine; undefined if one can. */
export const systemdSkipReason = ['/usr/bin/systemd-notify', '/usr/bin/python3'].every((file) => existsSync(file))
  ? undefined
  : 'systemd-notify or python3 is missing';

/** A service manager's socket (`NOTIFY_SOCKET`) and the messages that it received. */
export class NotifySocket implements AsyncDisposable {
  readonly path: string;
  /** Each message as its assignments, such as `READY=1`. */
  readonly messages: (readonly string[])[] = [];
  readonly #directory: string;
  readonly #listener: ChildProcess;
  readonly #lines: Interface;

  private constructor(directory: string, listener: ChildProcess, lines: Interface, path: string) {
    this.#directory = directory;
    this.#listener = listener;
    this.#lines = lines;
    this.path = path;
    lines.on('line', (line) => this.messages.push(JSON.parse(line)));
  }

  static async listen(): Promise<NotifySocket> {
    const directory = await mkdtemp(join(tmpdir(), 'latchkey-notify-'));
    const path = join(directory, 'socket');
    const script = join(import.meta.dirname, 'notify-socket.py');
    const listener = spawn('/usr/bin/python3', [script, path], { stdio: ['ignore', 'pipe', 'inherit'] });
    const lines = createInterface({ input: listener.stdout });
    await once(lines, 'line');
    return new NotifySocket(directory, listener, lines, path);
  }

  /** All values of this name that were received, such as every `STATUS_BY_ERROR`. */
  valuesOf(name: string): string[] {
    return this.messages.flatMap((message) =>
      message.filter((part) => part.startsWith(`${name}=`)).map((part) => part.slice(name.length + 1)),
    );
  }

  /** Waits until this assignment was received, without polling. */
  async waitForAssignment(assignment: string): Promise<void> {
    const late = AbortSignal.timeout(scaleDeadline(15_000));
    while (!this.messages.some((message) => message.includes(assignment))) {
      await once(this.#lines, 'line', { signal: late }).catch((cause) => {
        throw new Error(`${assignment} was not received`, { cause });
      });
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#listener.kill('SIGKILL');
    await once(this.#listener, 'exit');
    await rm(this.#directory, { recursive: true, force: true });
  }
}
