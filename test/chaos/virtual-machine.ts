import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { access, mkdir, readdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { promisify } from 'node:util';

const run = promisify(execFile);

const CHECKOUT = join(import.meta.dirname, '../..');
/** Downloaded once; 28 MB. */
const PARTS = join(CHECKOUT, '.cache/chaos/machine');
const QEMU = '/usr/bin/qemu-system-x86_64';

/** Why no machine can be emulated here, or null if one can. Downloads the kernel if it is missing. */
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

/** An emulated machine with a console. It is slow. */
export class VirtualMachine implements AsyncDisposable {
  readonly #child: ChildProcess;
  readonly #directory: string;
  /** The console's output. It is not written to a file, because it may contain tokens. */
  readonly #lines: string[] = [];
  #commands = 0;

  private constructor(child: ChildProcess, directory: string) {
    this.#child = child;
    this.#directory = directory;
    if (child.stdout !== null) createInterface(child.stdout).on('line', (line) => this.#lines.push(line));
  }

  /**
   * Starts a machine whose console becomes a shell.
   * @param directory is deleted with the machine
   * @param clock its initial time, in ms since 1970
   * @param boots QEMU's options for booting
   * @param seconds a timeout for the shell
   */
  static async start(
    directory: string,
    clock: number,
    boots: readonly string[],
    seconds = 60,
  ): Promise<VirtualMachine> {
    const rtc = new Date(clock).toISOString().slice(0, 19);
    const hardware = '-M q35 -accel tcg,thread=multi -cpu max -m 1024 -smp 2 -nographic'.split(' ');
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

  /** Runs a line of shell. @returns its output and exit status */
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

  /** Waits for a line of output. @returns its index */
  async #until(wanted: (line: string) => boolean, seconds: number, from = 0): Promise<number> {
    for (let tries = 0; tries < seconds * 10; tries++) {
      const at = this.#lines.findIndex((line, index) => index >= from && wanted(line));
      if (at >= 0) return at;
      if (this.#child.exitCode !== null) break;
      await new Promise((resolve) => setTimeout(resolve, 100));
    }
    throw new Error(
      `the machine did not respond within ${seconds} s; its last lines: ${this.#lines.slice(-5).join('\n')}`,
    );
  }
}

/** A kernel with its modules and a shell, from this machine's distribution. */
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
  if (kernel === undefined) throw new Error('the downloaded packages contain no kernel');
  const modules = join(PARTS, 'lib/modules', kernel.replace('vmlinuz-', ''), 'kernel');
  return { kernel: join(boot, kernel), modules, busybox: join(PARTS, 'bin/busybox') };
}
