import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { constants } from 'node:fs';
import { access, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { release, tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { promisify } from 'node:util';

import { scaleDeadline } from './deadlines.ts';

const run = promisify(execFile);
const checkout = join(import.meta.dirname, '../..');

const QEMU = '/usr/bin/qemu-aarch64-static';
/**
 * How the kernel recognizes an arm64 program and what runs it, in the format of binfmt_misc; from Debian's
 * qemu-user-static.
 */
const FORMAT = '/usr/lib/binfmt.d/qemu-aarch64.conf';
const TOOLS = [QEMU, '/usr/sbin/debootstrap'];

/** Why no arm64 program can run here; null if one can. Tests pass it to `ctx.skip`, so that it is reported. */
export async function arm64SkipReason(): Promise<string | null> {
  if (process.getuid?.() !== 0) return 'fetching an arm64 Debian needs root';
  for (const tool of TOOLS) {
    if (await isMissing(tool)) return `${tool} is missing`;
  }
  try {
    await arm64Root();
    return null;
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  }
}

/** The same for a whole arm64 Debian: since Linux 6.7 a namespace can have its own program formats. */
export async function arm64DebianSkipReason(): Promise<string | null> {
  const [major = 0, minor = 0] = release().split('.').map(Number);
  if (major < 6 || (major === 6 && minor < 7)) return 'program formats per namespace need Linux 6.7';
  if (await isMissing(FORMAT, constants.R_OK)) return `${FORMAT} is missing`;
  return await arm64SkipReason();
}

/** The folder of an arm64 Debian with its packages unpacked but not configured. Read-only. */
export async function arm64Root(): Promise<string> {
  try {
    return (
      await run(join(checkout, 'scripts/test-machine'), ['arm64'], { timeout: scaleDeadline(280_000) })
    ).stdout.trim();
  } catch (error) {
    const lastLine = (error as { stderr?: string }).stderr?.trim().split('\n').at(-1);
    throw new Error(`can't get an arm64 Debian: ${lastLine ?? error}`, { cause: error });
  }
}

/**
 * The command that runs one arm64 program from anywhere: it sees this machine's files, and its libraries in `root`.
 * Programs that it starts must be of this machine's architecture.
 * @param pageSize the kernel's page size that the program sees, in bytes: a Raspberry Pi 5 has 16 KiB
 */
export function arm64Command(root: string, program: string, pageSize = 4096): readonly [command: string, ...string[]] {
  return [QEMU, '-p', String(pageSize), '-L', root, program];
}

/** An arm64 Debian in its own namespaces, on files that are deleted with it; it shares this machine's network. */
export class Arm64Debian implements AsyncDisposable {
  readonly #holder: ChildProcess;
  readonly #folder: string;

  private constructor(holder: ChildProcess, folder: string) {
    this.#holder = holder;
    this.#folder = folder;
  }

  static async start(): Promise<Arm64Debian> {
    const root = await arm64Root();
    const folder = await mkdtemp(join(tmpdir(), 'latchkey-arm64-'));
    // In its own user namespace, all of this can be mounted without affecting other processes.
    const holder = spawn('unshare', ['--user', '--mount', 'sh', '-euc', HOLD, 'sh', folder, root, FORMAT], {
      stdio: ['pipe', 'pipe', 'pipe'],
    });
    const machine = new Arm64Debian(holder, folder);
    try {
      await machine.#settle();
      return machine;
    } catch (error) {
      await machine[Symbol.asyncDispose]();
      throw error;
    }
  }

  async #settle(): Promise<void> {
    const { pid, stdin, stdout, stderr } = this.#holder;
    let errorOutput = '';
    stderr?.on('data', (chunk) => {
      errorOutput += chunk;
    });
    if (pid === undefined || stdin === null || stdout === null) throw new Error('unshare did not start');
    const lines = createInterface({ input: stdout })[Symbol.asyncIterator]();
    const expectLine = async (line: string) => {
      if ((await lines.next()).value !== line) throw new Error(`can't set up an arm64 Debian: ${errorOutput}`);
    };
    await expectLine('born');
    for (const map of ['uid_map', 'gid_map']) await writeFile(`/proc/${pid}/${map}`, '0 0 65536\n');
    stdin.write('go\n');
    await expectLine('up');
  }

  /** Its root directory, as programs of this machine see it if they are run by `beside`. */
  get root(): string {
    return `${this.#folder}/root`;
  }

  /** Runs a program of this machine with a view of the arm64 Debian's files. @returns its stdout and stderr */
  async beside(command: string, ...args: string[]): Promise<string> {
    const [program = '', ...rest] = this.#enter(command, ...args);
    const { stdout, stderr } = await run(program, rest, { timeout: scaleDeadline(120_000), killSignal: 'SIGKILL' });
    return stdout + stderr;
  }

  /** Runs a program of the arm64 Debian to its end. @returns its stdout and stderr */
  run(command: string, ...args: string[]): Promise<string> {
    return this.beside('chroot', this.root, command, ...args);
  }

  #enter(...command: string[]): string[] {
    return ['nsenter', '--target', String(this.#holder.pid), '--user', '--mount', '--wd=/', ...command];
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const holder = this.#holder;
    if (holder.exitCode === null && holder.signalCode === null) {
      const ended = once(holder, 'exit');
      holder.stdin?.end();
      holder.kill('SIGKILL');
      await ended;
    }
    await rm(this.#folder, { recursive: true, force: true });
  }
}

/** Mounts the files on a memory file system and registers, only for this namespace, what runs arm64 programs. */
const HOLD = `
folder=$1 lower=$2 format=$3
echo born
read -r _
mount -t tmpfs tmpfs "$folder"
mkdir "$folder/upper" "$folder/work" "$folder/root" "$folder/formats"
mount -t overlay -o "userxattr,lowerdir=$lower,upperdir=$folder/upper,workdir=$folder/work" overlay "$folder/root"
mount -t binfmt_misc binfmt_misc "$folder/formats"
cat "$format" >"$folder/formats/register"
mount --rbind /proc "$folder/root/proc"
mount --rbind /dev "$folder/root/dev"
echo up
read -r _
`;

async function isMissing(file: string, mode = constants.X_OK): Promise<boolean> {
  return access(file, mode).then(
    () => false,
    () => true,
  );
}
