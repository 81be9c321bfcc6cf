// The arm64 package on this machine: its contents, and in the long form that an emulator of the processor runs its hub.
import { execFile } from 'node:child_process';
import { mkdtemp, open, readdir, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { startEmulator } from '../../../src/emulator/index.ts';
import { arm64Command, arm64Root, arm64SkipReason } from '../../support/arm64.ts';
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
async function latchkey(): Promise<readonly string[]> {
  const lib = join(folder, 'tree/usr/lib/latchkey');
  return [...arm64Command(await arm64Root(), join(lib, 'bin/node'), LARGE_PAGES), join(lib, 'dist/main.js')];
}

/** The sums of the scripts that dpkg runs, which are the same for every architecture. */
async function scriptsOf(debian: string): Promise<string> {
  const script = 'dpkg-deb --ctrl-tarfile "$0" | tar -x -O ./preinst ./postinst ./prerm ./postrm | sha256sum';
  return (await run('sh', ['-c', script, debian])).stdout;
}

/** A package's files; their names omit hashes of their contents and the architecture. */
async function filesOf(debian: string): Promise<string[]> {
  const { stdout } = await run('dpkg-deb', ['--contents', debian]);
  const files = stdout.split('\n').filter((line) => line.startsWith('-'));
  return files.map((line) => line.replace(/^.* \.\//, '').replace(/(-(x64|arm64))?-[A-Z0-9]{8}(?=\.)/, '')).sort();
}

it("the arm64 package has the same files and scripts as this machine's package, and only arm64 programs", async () => {
  expect((await run('dpkg-deb', ['--field', file, 'Architecture'])).stdout).toBe('arm64\n');
  const own = (await buildPackage()).path;
  expect(await filesOf(file)).toEqual(await filesOf(own));
  expect(await scriptsOf(file)).toBe(await scriptsOf(own));

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
  it('a hub of the arm64 package, with the page size of a Pi 5, is paired, is killed, and has its grant again', async (ctx) => {
    const missing = await arm64SkipReason();
    if (missing !== null) ctx.skip(missing);
    await serves(await latchkey());
  });
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
