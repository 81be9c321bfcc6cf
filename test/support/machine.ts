import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { constants, createWriteStream } from 'node:fs';
import { access, appendFile, mkdir, mkdtemp, readdir, rm, rmdir } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { promisify } from 'node:util';
import { scaleDeadline } from './deadlines.ts';
import { logFile } from './logs.ts';
import { type Host, lanSkipReason } from './netns.ts';
import { childrenOf, commandName } from './processes.ts';

const run = promisify(execFile);

const MAKE_DEBIAN = join(import.meta.dirname, '../../scripts/test-machine');
const BOOT = join(import.meta.dirname, 'machine.sh');
const TOOLS = ['/usr/bin/systemd-nspawn', '/usr/sbin/debootstrap', '/usr/bin/nsenter', '/usr/bin/unshare'];
/** What a container's systemd needs: the hierarchies of a machine with both cgroup versions, or the only one. */
const HIERARCHIES = [['/sys/fs/cgroup/systemd', '/sys/fs/cgroup/unified'], ['/sys/fs/cgroup']];

/** The result of a command inside a machine. */
export interface MachineResult {
  readonly status: number;
  readonly stdout: string;
  readonly stderr: string;
}

/**
 * Why no machine can be booted here; null if one can. Creates the Debian that it boots if that is missing, which takes
 * 40 s.
 * @param tools that the test runs besides it, as absolute paths
 */
export async function machineSkipReason(
  tools: readonly string[] = [],
  contents: DebianContents = {},
): Promise<string | null> {
  const noLan = await lanSkipReason([...TOOLS, ...tools]);
  if (noLan !== null) return noLan;
  if ((await hierarchies()) === null) return 'cgroups cannot be created here';
  return debian(contents).then(
    () => null,
    (error: { readonly stderr?: string }) => error.stderr?.trim().split('\n').at(-1) ?? String(error),
  );
}

/** A release of Debian: 12 or 13. */
export type DebianSuite = 'bookworm' | 'trixie';

/** What a machine consists of. */
export interface DebianContents {
  /** Default: Debian 12. */
  readonly suite?: DebianSuite;
  /** Packages of Debian that are installed besides those that all machines have. */
  readonly packages?: readonly string[];
}

/** The number of machines that this process has booted. */
let booted = 0;

/**
 * A Debian with a booted systemd, in a container. It is a host of a test's LAN and can reach nothing else. What it
 * writes survives its reboots and is deleted on disposal.
 */
export class Machine implements AsyncDisposable {
  readonly #child: ChildProcess;
  readonly #directory: string;
  /** The file with its console output. */
  readonly #console: string;
  readonly #cgroups: readonly string[];
  /** The pid of the container's first process on this machine. */
  #leader = '';

  private constructor(child: ChildProcess, directory: string, console: string, cgroups: readonly string[]) {
    this.#child = child;
    this.#directory = directory;
    this.#console = console;
    this.#cgroups = cgroups;
  }

  /**
   * Boots a machine and waits until all its services have started. Its host name is that of the host.
   * @param folder mounted read-only in it as /mnt
   */
  static async boot(
    { namespace, name: hostname }: Host,
    folder: string,
    contents: DebianContents = {},
  ): Promise<Machine> {
    const root = await debian(contents);
    // scripts/test removes those of dead processes by this name.
    const name = `latchkey-test-${process.pid}-${booted++}`;
    const parents = (await hierarchies()) ?? [];
    const cgroups = parents.map((parent) => join(parent, name));
    for (const cgroup of cgroups) await mkdir(cgroup);
    const directory = await mkdtemp(join(tmpdir(), 'latchkey-machine-'));
    const isolated = '--mount --propagation private --pid --mount-proc --fork --kill-child'.split(' ');
    const args = [directory, root, folder, namespace, hostname, ...cgroups];
    // It ends with the test's process, however that ends: the first process of a pid namespace takes all others with
    // it.
    const child = spawn('setpriv', ['--pdeathsig', 'KILL', 'unshare', ...isolated, BOOT, ...args], {
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    const console = logFile('machine-console');
    const log = createWriteStream(console, { mode: 0o600 });
    child.stdout.pipe(log, { end: false });
    child.stderr.pipe(log, { end: false });
    const machine = new Machine(child, directory, console, cgroups);
    try {
      await machine.#started(null);
      return machine;
    } catch (error) {
      await machine[Symbol.asyncDispose]();
      throw error;
    }
  }

  /**
   * Runs a shell command as root. `input` is its stdin; `seconds` is the longest time that it takes on a quiet machine.
   */
  async run(command: string, { seconds = 60, input = '' } = {}): Promise<MachineResult> {
    const inside = ['--target', this.#leader, '--mount', '--uts', '--ipc', '--net', '--pid', '--cgroup'];
    const child = spawn('nsenter', [...inside, '/bin/sh', '-c', command], {
      stdio: 'pipe',
      env: ENVIRONMENT,
      detached: true,
    });
    const output = { stdout: '', stderr: '' };
    for (const name of ['stdout', 'stderr'] as const) {
      child[name].setEncoding('utf8').on('data', (text) => {
        output[name] += text;
      });
    }
    child.stdin.on('error', () => undefined).end(input);
    // Kill the whole process group: nsenter has a child.
    const late = setTimeout(() => process.kill(-(child.pid ?? 0), 'SIGKILL'), scaleDeadline(seconds * 1000));
    const [status] = (await once(child, 'close')) as [number | null];
    clearTimeout(late);
    if (status === null) throw new Error(`${command}: hung: ${output.stdout}${output.stderr}`);
    return { status, ...output };
  }

  /** Runs a shell command that must succeed. @returns its stdout without the last newline */
  async sh(command: string, options: { readonly seconds?: number; readonly input?: string } = {}): Promise<string> {
    const { status, stdout, stderr } = await this.run(command, options);
    if (status !== 0) throw new Error(`${command}: exit status ${status}: ${stdout}${stderr}`);
    return stdout.replace(/\n$/, '');
  }

  /** Writes a file owned by root, and creates its folders. `mode` is octal, as in chmod. */
  async write(path: string, text: string, mode = '644'): Promise<void> {
    await this.sh(`mkdir -p "$(dirname ${path})"; umask 077; cat >${path}; chmod ${mode} ${path}`, { input: text });
  }

  /** Where this machine's programs find a file of it: sockets, too. No part of `file` may be an absolute link. */
  path(file: string): string {
    return `/proc/${this.#leader}/root${file}`;
  }

  /** One property of a unit, as in `systemctl show`. */
  property(unit: string, name: string): Promise<string> {
    return this.sh(`systemctl show --value --property=${name} ${unit}`);
  }

  /** The journal lines of a unit and of systemd about it, in this boot. */
  async journal(unit: string, options = ''): Promise<readonly string[]> {
    const text = await this.sh(`journalctl --sync; journalctl --boot --quiet --output=cat --unit=${unit} ${options}`);
    return text === '' ? [] : text.split('\n');
  }

  /** Reboots it and waits until all its services have started again. */
  async reboot(): Promise<void> {
    await this.#keepJournal();
    const before = this.#leader;
    await this.run('systemctl reboot');
    await this.#started(before);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#keepJournal().catch(() => undefined);
    const { exitCode, signalCode } = this.#child;
    if (exitCode === null && signalCode === null) {
      this.#child.kill('SIGKILL');
      await once(this.#child, 'exit');
    }
    for (const cgroup of this.#cgroups) await removeCgroup(cgroup);
    await rm(this.#directory, { recursive: true, force: true });
  }

  /** Keeps the journal, so that it is searched for secrets with all logs. */
  async #keepJournal(): Promise<void> {
    if (this.#leader === '') return;
    const { stdout } = await this.run('journalctl --sync; journalctl --boot --output=short-monotonic');
    await appendFile(logFile('machine-journal'), stdout, { mode: 0o600 });
  }

  /** Waits for a systemd with another pid than before, and then for everything that it starts. */
  async #started(before: string | null): Promise<void> {
    const late = performance.now() + scaleDeadline(60_000);
    while (performance.now() < late) {
      if (this.#child.exitCode !== null || this.#child.signalCode !== null) break;
      const leader = this.#find();
      if (leader !== null && leader !== before) {
        this.#leader = leader;
        const { stdout } = await this.run('systemctl is-system-running --wait', { seconds: 60 });
        if (/^(running|degraded)/.test(stdout)) return;
      }
      await sleep(50);
    }
    throw new Error(`the machine did not boot: ${this.#console}`);
  }

  /** The pid of the container's first process, as soon as it is systemd. */
  #find(): string | null {
    let parent = this.#child.pid ?? -1;
    for (const name of ['machine.sh', 'systemd-nspawn', 'systemd']) {
      const found = childrenOf(parent).find((pid) => commandName(pid) === name);
      if (found === undefined) return null;
      parent = found;
    }
    return String(parent);
  }
}

const ENVIRONMENT = { PATH: '/usr/sbin:/usr/bin:/sbin:/bin', HOME: '/root', LANG: 'C.UTF-8' };

/** The folder of the Debian that machines boot. */
export async function debian({ suite = 'bookworm', packages = [] }: DebianContents = {}): Promise<string> {
  const added = packages.length === 0 ? [] : ['--with', packages.join(',')];
  const { stdout } = await run(MAKE_DEBIAN, ['--suite', suite, ...added], { timeout: scaleDeadline(240_000) });
  return stdout.trim();
}

/** Where cgroups can be created, or null. */
async function hierarchies(): Promise<readonly string[] | null> {
  for (const paths of HIERARCHIES) {
    const writable = await Promise.all(paths.map((path) => access(join(path, 'cgroup.procs'), constants.W_OK))).then(
      () => true,
      () => false,
    );
    if (writable) return paths;
  }
  return null;
}

/** Depth first. The kernel needs a moment to release a process that has exited. */
async function removeCgroup(cgroup: string): Promise<void> {
  const inner = await readdir(cgroup, { withFileTypes: true }).catch(() => []);
  for (const entry of inner) if (entry.isDirectory()) await removeCgroup(join(cgroup, entry.name));
  for (let tries = 0; tries < 50; tries++) {
    const left = await rmdir(cgroup).catch((error: NodeJS.ErrnoException) => error.code === 'EBUSY');
    if (left !== true) return;
    await sleep(50);
  }
}
