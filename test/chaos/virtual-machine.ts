import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { access, chmod, cp, mkdir, mkdtemp, readdir, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { createInterface } from 'node:readline';
import { promisify } from 'node:util';
import { MAIN } from '../support/program.ts';

const run = promisify(execFile);

const CHECKOUT = join(import.meta.dirname, '../..');
/** Fetched once; 28 MB. */
const PARTS = join(CHECKOUT, '.cache/chaos/machine');
const QEMU = '/usr/bin/qemu-system-x86_64';
/** In the order in which they need each other. */
const MODULES = [
  'virtio_ring',
  'virtio',
  'virtio_pci_legacy_dev',
  'virtio_pci_modern_dev',
  'virtio_pci',
  'failover',
  'net_failover',
  'virtio_net',
];
/** How the machine sees the one that it runs on. */
const HOST = '10.0.2.2';

const INIT = `#!/bin/busybox sh
/bin/busybox --install -s /bin
mount -t proc proc /proc; mount -t sysfs sys /sys; mount -t devtmpfs dev /dev
for module in ${MODULES.join(' ')}; do insmod /modules/$module.ko; done
ip link set lo up; ip addr add 10.0.2.15/24 dev eth0; ip link set eth0 up
stty -echo -F /dev/ttyS0
echo @@ready >/dev/ttyS0
exec setsid sh -c 'sh </dev/ttyS0 2>&1 | cat >/dev/ttyS0'
`;

/** Leads from the machine's own loopback to the same ports of the host's. */
const FORWARD = `import net from 'node:net';
for (const port of process.argv.slice(2)) net.createServer((one) => {
  const other = net.connect(Number(port), '${HOST}');
  for (const [from, to] of [[one, other], [other, one]]) from.on('error', () => {}).on('close', () => to.destroy()).pipe(to);
}).listen(Number(port), '127.0.0.1');
`;

/** Says why no machine can be had here, or null where one can; fetches its kernel where that is missing. */
export async function whyNoMachine(): Promise<string | null> {
  if (process.arch !== 'x64' || process.platform !== 'linux') return 'the kernel is for x64';
  const missing = await access(QEMU).catch(() => true);
  if (missing) return `${QEMU} is missing: apt-get install qemu-system-x86`;
  try {
    await fetchParts();
    return null;
  } catch (error) {
    return `no kernel: ${error instanceof Error ? error.message.split('\n')[0] : error}`;
  }
}

/** A machine of its own with this checkout's build, a hub's directory, and a console. Emulated, and so rather slow. */
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
   * Boots a machine.
   * @param clock what its clock says then, in ms since 1970
   * @param folder is copied to the same path
   * @param ports of the host's loopback that are to be on the machine's loopback, too
   */
  static async boot(clock: number, folder: string, ports: readonly string[]): Promise<VirtualMachine> {
    const directory = await mkdtemp(join(tmpdir(), 'latchkey-machine-'));
    const { kernel } = await fetchParts();
    const initrd = await packRoot(directory, folder);
    const append = ['-append', 'console=ttyS0 quiet panic=1'];
    const machine = await VirtualMachine.start(directory, clock, ['-kernel', kernel, '-initrd', initrd, ...append]);
    await machine.run(`node /forward.mjs ${ports.join(' ')} >/dev/null 2>&1 &`);
    return machine;
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

  /** Runs the command line. */
  latchkey(command: string): Promise<{ readonly status: number; readonly output: string }> {
    return this.run(`node /app/dist/main.js ${command} 2>/tmp/stderr`);
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
export async function fetchParts(): Promise<{ kernel: string; modules: string; busybox: string }> {
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

/** All that the machine has, in its memory. @returns the file to boot it from */
async function packRoot(directory: string, folder: string): Promise<string> {
  const root = join(directory, 'root');
  const { modules, busybox } = await fetchParts();
  for (const name of ['bin', 'modules', 'proc', 'sys', 'dev', 'run', 'app'])
    await mkdir(join(root, name), { recursive: true });
  await cp(busybox, join(root, 'bin/busybox'));
  const files = await readdir(modules, { recursive: true });
  for (const name of MODULES) {
    const file = files.find((one) => one.endsWith(`/${name}.ko`)) ?? '';
    await cp(join(modules, file), join(root, 'modules', `${name}.ko`));
  }
  await cp(process.execPath, join(root, 'bin/node'));
  const { stdout } = await run('ldd', [process.execPath]);
  for (const [library] of stdout.matchAll(/\/\S+/g)) {
    await mkdir(join(root, dirname(library)), { recursive: true });
    await cp(library, join(root, library), { dereference: true });
  }
  await cp(dirname(MAIN), join(root, 'app/dist'), { recursive: true });
  await cp(join(CHECKOUT, 'package.json'), join(root, 'app/package.json'));
  for (const path of productionPackages()) {
    await cp(join(CHECKOUT, path), join(root, 'app', path), { recursive: true });
  }
  await cp(folder, join(root, folder), { recursive: true });
  await writeFile(join(root, 'forward.mjs'), FORWARD);
  await writeFile(join(root, 'init'), INIT);
  await chmod(join(root, 'init'), 0o755);
  await run('sh', ['-c', 'find . | "$1" cpio -o -H newc >../initrd', 'sh', busybox], { cwd: root });
  return join(directory, 'initrd');
}

function productionPackages(): string[] {
  const lock = JSON.parse(readFileSync(join(CHECKOUT, 'package-lock.json'), 'utf8')) as {
    packages: Record<string, { dev?: boolean; optional?: boolean }>;
  };
  const all = Object.entries(lock.packages).filter(([path, { dev, optional }]) => path !== '' && !dev && !optional);
  // Those inside of others are copied with them.
  return all.map(([path]) => path).filter((path) => path.indexOf('node_modules', 1) < 0);
}
