// Containers by Podman and runc, with a storage of their own.
import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { appendFile, mkdtemp, readdir, readFile, rm, statfs } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { scaleDeadline } from '../../support/deadlines.ts';
import { eventually, type ProcessResult } from '../../support/hub-process.ts';
import { logFile } from '../../support/logs.ts';

const PODMAN = '/usr/bin/podman';
/** The type of an overlay file system (statfs(2)), on which the kernel allows no other one. */
const OVERLAY = 0x794c7630;
const TOOLS = [PODMAN, '/usr/sbin/runc', '/usr/bin/conmon'];

/**
 * The least rights that the documents promise to suffice: a root file system that can't be written, without memory file
 * systems on top, and no capabilities. The limits are named, because a machine may not be able to raise them.
 */
const RESTRICTIONS = [
  ...['--read-only', '--read-only-tmpfs=false', '--cap-drop=ALL', '--security-opt', 'no-new-privileges'],
  ...['--ulimit', 'nofile=4096:4096', '--ulimit', 'nproc=4096:4096', '--pull', 'never'],
];

/** Why no container can run here; null if one can. */
export function containersSkipReason(): string | null {
  if (process.getuid?.() !== 0) return 'containers need root here';
  const missing = TOOLS.find((tool) => !existsSync(tool));
  return missing === undefined ? null : `${missing} is missing`;
}

/** The options of a container. */
export interface ContainerOptions {
  readonly image: string;
  /** Podman's options; default network: the host's. */
  readonly options?: readonly string[];
  readonly command?: readonly string[];
}

/** Podman with images, containers and volumes that are deleted with it. */
export class Containers implements AsyncDisposable {
  readonly #folder: string;
  /** Podman's driver: `vfs` works everywhere, but copies the whole image for each container. */
  readonly #driver: 'overlay' | 'vfs';

  private constructor(folder: string, driver: 'overlay' | 'vfs') {
    this.#folder = folder;
    this.#driver = driver;
  }

  static async create(): Promise<Containers> {
    const folder = await mkdtemp(join(tmpdir(), 'latchkey-containers-'));
    const { type } = await statfs(folder);
    return new Containers(folder, type === OVERLAY ? 'vfs' : 'overlay');
  }

  /** The folder on this machine of a volume's files. */
  volume(name: string): string {
    return join(this.#folder, 'root/volumes', name, '_data');
  }

  /** Runs Podman to its end. */
  podman(...args: string[]): Promise<ProcessResult> {
    const storage = ['root', 'runroot', 'tmpdir'].flatMap((part) => [`--${part}`, join(this.#folder, part)]);
    const engine = ['--runtime', 'runc', '--storage-driver', this.#driver, '--cgroup-manager', 'cgroupfs'];
    return new Promise((resolve) => {
      execFile(
        PODMAN,
        [...engine, ...storage, ...args],
        { timeout: scaleDeadline(60_000), maxBuffer: 2 ** 24 },
        (error, stdout, stderr) => {
          const status = error === null ? 0 : typeof error.code === 'number' ? error.code : null;
          resolve({ status, stdout, stderr });
        },
      );
    });
  }

  /** The same for a command that must succeed. @returns its standard output */
  async sh(...args: string[]): Promise<string> {
    const { status, stdout, stderr } = await this.podman(...args);
    if (status !== 0) throw new Error(`podman ${args.join(' ')} ended with ${status}: ${stderr}`);
    return stdout.trim();
  }

  /** Runs a container to its end, and deletes it. */
  async run({ image, options = [], command = [] }: ContainerOptions): Promise<ProcessResult> {
    const network = options.includes('--network') ? [] : ['--network', 'host'];
    const result = await this.podman('run', '--rm', ...RESTRICTIONS, ...network, ...options, image, ...command);
    await appendFile(logFile('container'), result.stderr);
    return result;
  }

  /** Starts a container that runs until it is removed. */
  async start(name: string, { image, options = [], command = [] }: ContainerOptions): Promise<void> {
    const network = options.includes('--network') ? [] : ['--network', 'host'];
    await this.sh('run', '--detach', '--name', name, ...RESTRICTIONS, ...network, ...options, image, ...command);
  }

  /** The output and the errors of a container. */
  async logs(name: string): Promise<string> {
    const { stdout, stderr } = await this.podman('logs', name);
    return stdout + stderr;
  }

  /** Stops a container by SIGTERM, and deletes it. @returns its exit status */
  async remove(name: string): Promise<number> {
    await this.sh('stop', '--time', '60', name);
    const status = await this.sh('inspect', '--format', '{{.State.ExitCode}}', name);
    // Only the errors, which include the hub's log: the emulator prints the secret of its client.
    const { stderr } = await this.podman('logs', name);
    await appendFile(logFile('container'), stderr);
    await this.sh('rm', name);
    return Number(status);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.podman('rm', '--all', '--force', '--time', '0');
    // A container that has just ended is still being cleaned up by another process, which would make the folder again.
    await eventually(async () => !(await isInUse(this.#folder)));
    await rm(this.#folder, { recursive: true, force: true, maxRetries: 10 });
  }
}

/** Whether a process has a path in its command line. */
async function isInUse(path: string): Promise<boolean> {
  const processes = (await readdir('/proc')).filter((name) => /^\d+$/.test(name));
  const commands = await Promise.all(processes.map((pid) => readFile(`/proc/${pid}/cmdline`, 'utf8').catch(() => '')));
  return commands.some((command) => command.includes(path));
}
