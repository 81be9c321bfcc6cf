// The arm64 package on this machine: its contents, and that it starts; in the long form all that an emulated Debian
// does with it.
import { execFile } from 'node:child_process';
import { mkdtemp, open, readdir, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { startEmulator } from '../../../src/emulator/index.ts';
import { version } from '../../../src/system/version.ts';
import { Arm64Debian, arm64Command, arm64DebianSkipReason, arm64Root, arm64SkipReason } from '../../support/arm64.ts';
import { scaleDeadline } from '../../support/deadlines.ts';
import { HubProcess } from '../../support/hub-process.ts';
import { IS_LONG_FORM } from '../../support/long.ts';
import { buildPackage } from '../machine/packages.ts';

const run = promisify(execFile);
const TEST_DEB = join(import.meta.dirname, '../../../scripts/test-deb');
/** The page size of a Raspberry Pi 5, in bytes. */
const LARGE_PAGES = 16_384;
/** `e_machine` of an ELF header. */
const AARCH64 = 183;

let file: string;
let folder: string;

beforeAll(async () => {
  file = (await run(TEST_DEB, ['--arm64'])).stdout.trim();
  folder = await mkdtemp(join(tmpdir(), 'latchkey-arm64-'));
  await run('dpkg-deb', ['--extract', file, join(folder, 'tree')]);
}, scaleDeadline(200_000));

afterAll(async () => {
  if (folder !== undefined) await rm(folder, { recursive: true, force: true });
});

/** The command that starts the unpacked package's program. */
async function latchkey(pageSize?: number): Promise<readonly string[]> {
  const lib = join(folder, 'tree/usr/lib/latchkey');
  return [...arm64Command(await arm64Root(), join(lib, 'bin/node'), pageSize), join(lib, 'dist/main.js')];
}

/** A package's files; their names omit hashes of their contents and the architecture. */
async function filesOf(debian: string): Promise<string[]> {
  const { stdout } = await run('dpkg-deb', ['--contents', debian]);
  const files = stdout.split('\n').filter((line) => line.startsWith('-'));
  return files.map((line) => line.replace(/^.* \.\//, '').replace(/(-(x64|arm64))?-[A-Z0-9]{8}(?=\.)/, '')).sort();
}

it("the arm64 package has the same files as this machine's package, and only arm64 programs", async () => {
  expect((await run('dpkg-deb', ['--field', file, 'Architecture'])).stdout).toBe('arm64\n');
  expect(await filesOf(file)).toEqual(await filesOf((await buildPackage()).path));

  const lib = join(folder, 'tree/usr/lib/latchkey');
  const machines = new Map<string, number>();
  for (const entry of await readdir(lib, { recursive: true, withFileTypes: true })) {
    if (!entry.isFile()) continue;
    await using opened = await open(join(entry.parentPath, entry.name));
    const { buffer, bytesRead } = await opened.read(Buffer.alloc(20), 0, 20, 0);
    const isElf = bytesRead === 20 && buffer.toString('latin1', 0, 4) === '\x7fELF';
    if (isElf) machines.set(entry.name.replace(/-[A-Z0-9]{8}(?=\.)/, ''), buffer.readUInt16LE(18));
  }
  expect(Object.fromEntries(machines)).toEqual({ node: AARCH64, 'linux-arm64.node': AARCH64 });
});

// test/release/container/arm64.test.ts runs the same program, in its image.
if (IS_LONG_FORM) {
  it('the arm64 package runs the demo without a bad token, and a hub with the page size of a Pi 5', async (ctx) => {
    const missing = await arm64SkipReason();
    if (missing !== null) ctx.skip(missing);
    const { status, stdout, stderr } = await demo(await latchkey(), folder);
    expect(status, stderr).toBe(0);
    const { appliances, hand_outs, bad_hand_outs, refreshes } = JSON.parse(stdout) as Record<string, number>;
    expect({ appliances, bad_hand_outs }).toEqual({ appliances: 3, bad_hand_outs: 0 });
    expect(hand_outs).toBeGreaterThan(10);
    expect(refreshes).toBeGreaterThan(0);

    await serves(await latchkey(LARGE_PAGES));
  });

  it('an arm64 Debian installs the package, upgrades it, refuses it over a newer store, and purges it', async (ctx) => {
    const missing = await arm64DebianSkipReason();
    if (missing !== null) ctx.skip(missing);
    await using debian = await Arm64Debian.start();
    // This machine's dpkg unpacks, which is fast; the package's scripts and all that they call are arm64 programs.
    const dpkg = (...args: string[]) => debian.beside('dpkg', `--root=${debian.root}`, '--force-architecture', ...args);
    const files = () => debian.run('find', '/usr', '/etc', '/var/lib/latchkey', '-name', '*latchkey*');

    expect(await debian.run('uname', '-m')).toBe('aarch64\n');
    expect(await dpkg('--install', file)).toContain('the hub starts with this machine');
    expect(await debian.run('latchkey', '--version')).toContain(version());
    expect(await debian.run('grep', 'latchkey', '/etc/group')).toMatch(/^latchkey-admin:/);

    const schema = (byte: string) =>
      debian.run(
        'sh',
        '-c',
        `mkdir -p /var/lib/latchkey; cd /var/lib/latchkey; (head -c 63 /dev/zero; printf '${byte}') >latchkey.db`,
      );
    await schema('\\1');
    await dpkg('--install', file);
    expect(await debian.run('ls', '/var/lib/latchkey/upgrades')).toMatch(/^0001-\S+\.db\n$/);
    await schema('\\377');
    await expect(dpkg('--install', file)).rejects.toThrow('the store has schema 255');

    await dpkg('--purge', 'latchkey');
    await expect(files()).rejects.toThrow(/\/var\/lib\/latchkey.: No such file/u);
  });
}

async function demo([qemu = '', ...latchkey]: readonly string[], home: string) {
  const env = { PATH: process.env['PATH'], HOME: home };
  const args = [...latchkey, 'demo', '--auto', '--for', '20s', '--json'];
  return run(qemu, args, { env }).then(
    (result) => ({ status: 0, ...result }),
    (error: { code: number; stdout: string; stderr: string }) => ({ ...error, status: error.code }),
  );
}

/** A hub is paired and issues a token, is killed, and has its grant again. */
async function serves([qemu = '', ...latchkey]: readonly string[]): Promise<void> {
  await using emulator = await startEmulator();
  // The package's Node and program replace those that other tests run.
  const within = ['sh', '-c', `shift 2; exec "$0" ${latchkey.join(' ')} "$@"`, qemu];
  await using hub = await HubProcess.start({ emulator, within });
  expect(await readFile(`/proc/${hub.pid}/cmdline`, 'utf8')).toContain('/usr/lib/latchkey/bin/node');
  const wallbox = await hub.addAppliance('wallbox');
  await hub.pair('wallbox', emulator);
  const { body } = await hub.requestToken(wallbox);
  expect(body).toMatchObject({ access_token: expect.any(String), token_type: 'Bearer' });
  await hub.kill('SIGKILL');
  await hub.launch();
  expect((await hub.requestToken(wallbox)).status).toBe(200);
  expect(await hub.appliance('wallbox')).toMatchObject({ state: 'active', problem: null });
}
