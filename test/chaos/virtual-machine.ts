import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { access, mkdir, readdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { promisify } from 'node:util';

const run = promisify(execFile);

const CHECKOUT = join(import.meta.dirname, '../..');
/** Fetched once; 28 MB. */
const PARTS = join(CHECKOUT, '.cache/chaos/machine');
const QEMU = '/usr/bin/qemu-system-x86_64';
/** Says why no machine can be had here, or null where one can; fetches its kernel where that is missing. */
export async function virtualMachineSkipReason(): Promise<string | null> {
  if (process.arch !== 'x64' || process.platform !== 'linux') return 'the kernel is for x64';
  const missing = await access(QEMU).catch(() => true);
  if (missing) return `${QEMU} is missing: apt-get install qemu-system-x86`;
  try {
    await fetchGuestFiles();
    return null;
  } catch (error) {
    return `no kernel: ${error instanceof Error ? error.message.split('\n')[0] : error}`;
  }
}

/** A machine of its own with a console. Emulated, and so rather slow. */
export class VirtualMachine implements AsyncDisposable {
  readonly #child: ChildProcess;
  readonly #directory: string;
  /** What it has said: kept here only, for there may be tokens in it. */
  readonly #lines: string[] = [];
  #commands = 0;

  private constructor(child: ChildProcess, directory: string) {
    this.#child = child;
    this.#directory = directory;
    if (child.stdout !== null) createInterface(child.stdout).on('line', (line) => this.#lines.push(line));
  }

  /**
   * Starts a machine whose console becomes a shell.
   * @param directory goes with the machine
   * @param clock what its clock says then, in ms since 1970
   * @param boots what it boots from, as QEMU's options
   * @param seconds until the shell is there
   */
  static async start(
    directory: string,
    clock: number,
    boots: readonly string[],
    seconds = 60,
  ): Promise<VirtualMachine> {
    const rtc = new Date(clock).toISOString().slice(0, 19);
    const hardware = [
      '-M',
      'q35',
      '-accel',
      'tcg,thread=multi',
      '-cpu',
      'max',
      '-m',
      '1024',
      '-smp',
      '2',
      '-nographic',
    ];
    const network = ['-nic', 'user,model=virtio-net-pci,restrict=off'];
    const child = spawn(QEMU, [...hardware, '-no-reboot', ...boots, '-rtc', `base=${rtc}`, ...network], {
      stdio: ['pipe', 'pipe', 'ignore'],
    });
    const machine = new VirtualMachine(child, directory);
    try {
      await machine.#until((line) => line.includes('@@ready'), seconds);
      return machine;
    } catch (error) {
      await machine[Symbol.asyncDispose]();
      throw error;
    }
  }

  /** Runs a line of shell. @returns what it said, and its exit status */
  async run(command: string, seconds = 60): Promise<{ readonly status: number; readonly output: string }> {
    this.#commands += 1;
    const mark = `@@${this.#commands}:`;
    const from = this.#lines.length;
    this.#child.stdin?.write(`{ ${command.endsWith('&') ? command : `${command};`} }; echo "${mark}$?"\n`);
    const at = await this.#until((line) => line.includes(mark), seconds, from);
    const output = this.#lines.slice(from, at).join('\n');
    return { status: Number(this.#lines[at]?.split(mark)[1]), output };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const { exitCode, signalCode } = this.#child;
    if (exitCode === null && signalCode === null) {
      this.#child.kill('SIGKILL');
      await once(this.#child, 'exit');
    }
    await rm(this.#directory, { recursive: true, force: true });
  }

  /** @returns which line it was */
  async #until(wanted: (line: string) => boolean, seconds: number, from = 0): Promise<number> {
    for (let tries = 0; tries < seconds * 10; tries++) {
      const at = this.#lines.findIndex((line, index) => index >= from && wanted(line));
      if (at >= 0) return at;
      if (this.#child.exitCode !== null) break;
      await new Promise((resolve) => setTimeout(resolve, 100));
    }
    throw new Error(
      `the machine did not answer within ${seconds} s; its last words: ${this.#lines.slice(-5).join('\n')}`,
    );
  }
}

/** A kernel with its modules and a shell, as the machine's own distribution has them. */
export async function fetchGuestFiles(): Promise<{ kernel: string; modules: string; busybox: string }> {
  const boot = join(PARTS, 'boot');
  const fetched = await readdir(boot).catch(() => []);
  if (!fetched.some((name) => name.startsWith('vmlinuz'))) {
    await mkdir(PARTS, { recursive: true });
    const { stdout } = await run('apt-cache', ['depends', 'linux-image-cloud-amd64']);
    const image = /Depends: (linux-image-\S+)/.exec(stdout)?.[1] ?? 'linux-image-cloud-amd64';
    await run('apt-get', ['download', image, 'busybox-static'], { cwd: PARTS });
    for (const name of await readdir(PARTS)) {
      if (name.endsWith('.deb')) await run('dpkg-deb', ['-x', join(PARTS, name), PARTS]);
    }
  }
  const kernel = (await readdir(boot)).find((name) => name.startsWith('vmlinuz'));
  if (kernel === undefined) throw new Error('there is none in what was fetched');
  const modules = join(PARTS, 'lib/modules', kernel.replace('vmlinuz-', ''), 'kernel');
  return { kernel: join(boot, kernel), modules, busybox: join(PARTS, 'bin/busybox') };
}
