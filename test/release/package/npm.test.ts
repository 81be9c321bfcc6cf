// Installs the npm package into an empty folder, as its users do.
import { execFile } from 'node:child_process';
import { mkdir, readdir, readFile, symlink, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { scaleDeadline } from '../../support/deadlines.ts';
import { stateFolder } from '../../support/state-folder.ts';
import { checkTypes } from './type-check.ts';

const run = promisify(execFile);
const ROOT = join(import.meta.dirname, '../../..');

let folder: ReturnType<typeof stateFolder>;
let env: NodeJS.ProcessEnv;
let tarball: string;

/** Where npm finds Node.js: the one that runs this test. */
const npm = (cwd: string, ...args: string[]) =>
  run('npm', [...args, '--no-audit', '--no-fund', '--loglevel=error', '--prefer-offline'], {
    cwd,
    env,
    timeout: scaleDeadline(60_000),
  });

beforeAll(async () => {
  folder = stateFolder();
  env = {
    ...process.env,
    PATH: `${dirname(process.execPath)}:${process.env['PATH']}`,
    XDG_CACHE_HOME: join(folder.path, 'cache'),
    XDG_STATE_HOME: join(folder.path, 'state'),
    LATCHKEY_LAN_ADDRESS: '127.0.0.1',
    LATCHKEY_LAN_MDNS: 'false',
  };
  tarball = (await run(join(ROOT, 'scripts/build-npm'), ['--output', folder.path], { env })).stdout.trim();
  await npm(folder.path, 'install', '--global', '--prefix', join(folder.path, 'prefix'), tarball);
});

afterAll(() => folder?.[Symbol.dispose]());

const latchkey = (...args: string[]) =>
  run(join(folder.path, 'prefix/bin/latchkey'), args, { env, timeout: scaleDeadline(20_000) });

/** A Node.js of this machine that is too old, or null. */
async function olderNode(): Promise<string | null> {
  for (const directory of process.env['PATH']?.split(':') ?? []) {
    const node = join(directory, 'node');
    const version = await run(node, ['--version']).catch(() => null);
    if (version !== null && Number.parseInt(version.stdout.slice(1), 10) < 24) return node;
  }
  return null;
}

describe('the globally installed npm package', () => {
  it('the npm package can be published as it is, with its licence', async () => {
    const installed = join(folder.path, 'prefix/lib/node_modules/latchkey');
    const manifest = JSON.parse(await readFile(join(installed, 'package.json'), 'utf8')) as Record<string, unknown>;
    expect(manifest).toMatchObject({ license: 'MIT', author: expect.any(String), description: expect.any(String) });
    expect(manifest).not.toHaveProperty('private');
    expect(await readFile(join(installed, 'LICENSE'), 'utf8')).toMatch(/^MIT License\n\nCopyright \(c\) /);
    expect((await readdir(installed)).sort()).toEqual(
      expect.arrayContaining(['CHANGELOG.md', 'LICENSE', 'README.md', 'dist', 'package.json']),
    );
    await npm(folder.path, 'publish', '--dry-run', tarball);
  });

  it('the npm package says in one line which Node.js it needs', async (ctx) => {
    const node = await olderNode();
    if (node === null) return ctx.skip('no Node.js before 24 is on this machine');
    const entry = join(folder.path, 'prefix/lib/node_modules/latchkey/dist/main.js');
    const failed = await run(node, [entry, '--version']).catch((error: { code: number; stderr: string }) => error);
    expect(failed).toMatchObject({
      code: 1,
      stderr: expect.stringMatching(/^latchkey: .* but 24 or later is required.*\n$/),
    });
  });

  it('the npm package provides the command latchkey, its manual page and shell completions', async () => {
    const { version } = JSON.parse(await readFile(join(ROOT, 'package.json'), 'utf8')) as { version: string };
    expect((await latchkey('--version')).stdout).toBe(`${version}\n`);
    const page = await readFile(join(folder.path, 'prefix/share/man/man1/latchkey.1'), 'utf8');
    expect(page).toMatch(/^\.TH LATCHKEY 1 /);
    expect((await latchkey('completion', 'bash')).stdout).toContain('complete -F _latchkey latchkey\n');
  });

  it('the npm package runs the demo', async () => {
    const { stdout } = await latchkey('demo', '--auto', '--for', '5s', '--json');
    expect(JSON.parse(stdout.trim().split('\n').at(-1) ?? '')).toMatchObject({ appliances: 4, bad_hand_outs: 0 });
  });

  it('the npm package exports the emulator as a library with types', async () => {
    const user = join(folder.path, 'user');
    await mkdir(join(user, 'node_modules'), { recursive: true });
    await symlink(join(folder.path, 'prefix/lib/node_modules/latchkey'), join(user, 'node_modules/latchkey'));
    await writeFile(join(user, 'package.json'), '{"type":"module"}');
    await writeFile(
      join(user, 'bench.ts'),
      `import { type Emulator, startEmulator } from 'latchkey/emulator';
await using emulator: Emulator = await startEmulator({ autoLogin: true });
const base: string = emulator.baseUrl;
console.log((await fetch(base)).status, base);
// @ts-expect-error there is no such option
export const wrong = () => startEmulator({ autoLogout: true });
`,
    );
    await checkTypes(user, 'bench.ts', 'es2024');
    const { stdout } = await run(process.execPath, ['bench.ts'], { cwd: user, env, timeout: scaleDeadline(20_000) });
    expect(stdout).toMatch(/^\d+ http:\/\/127\.0\.0\.1:\d+\n$/);
  });
});
