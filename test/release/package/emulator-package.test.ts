// Builds the emulator's npm package and installs it into an empty folder, as its users do, on both Node.js majors.
import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { copyFile, mkdir, readdir, readFile, symlink, writeFile } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { createInterface } from 'node:readline';
import { promisify } from 'node:util';
import { Agent, request } from 'undici';
import * as v from 'valibot';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { scaleDeadline } from '../../support/deadlines.ts';
import { rememberSecrets } from '../../support/logs.ts';
import { selectRows } from '../../support/long.ts';
import { stateFolder } from '../../support/state-folder.ts';

const run = promisify(execFile);
const ROOT = join(import.meta.dirname, '../../..');
const BUILD = join(ROOT, 'scripts/build-emulator-package');
const VERSION = '1.2.3-test';
/** The oldest major that the package is for, and one that is too old. */
const NODE_22 = '22.23.3';
const NODE_20 = '20.20.2';

/** What the command prints with --json. */
const startedSchema = v.object({
  base_url: v.string(),
  client_id: v.string(),
  client_secret: v.string(),
  console_url: v.string(),
  issuer: v.string(),
  ca_file: v.optional(v.string()),
});

let folder: ReturnType<typeof stateFolder>;
let tarball: string;
/** An empty project in which the package is installed. */
let project: string;
let nodes: Readonly<Record<20 | 22 | 24, string>>;
let env: NodeJS.ProcessEnv;

const npm = (cwd: string, ...args: string[]) =>
  run('npm', [...args, '--no-audit', '--no-fund', '--loglevel=error', '--prefer-offline'], {
    cwd,
    env,
    timeout: scaleDeadline(60_000),
  });

beforeAll(async () => {
  folder = stateFolder();
  project = join(folder.path, 'project');
  // The time of the commit, which may be another one for the second build.
  env = {
    ...process.env,
    SOURCE_DATE_EPOCH: '1700000000',
    LATCHKEY_HOMEPAGE: 'https://maker.example',
    LATCHKEY_BUGS: '',
    PATH: `${dirname(process.execPath)}:${process.env['PATH']}`,
  };
  // npx installs into its cache, which would stay; the downloads are shared.
  const { stdout: cache } = await run('npm', ['config', 'get', 'cache'], { env });
  await mkdir(join(folder.path, 'cache'));
  await mkdir(join(cache.trim(), '_cacache'), { recursive: true });
  await symlink(join(cache.trim(), '_cacache'), join(folder.path, 'cache/_cacache'));
  env = { ...env, npm_config_cache: join(folder.path, 'cache') };

  tarball = await build('first');
  await mkdir(project);
  await writeFile(join(project, 'package.json'), '{"type":"module"}');
  await npm(project, 'install', tarball);
  nodes = { 20: await installNode(NODE_20), 22: await installNode(NODE_22), 24: process.execPath };
}, scaleDeadline(120_000));

afterAll(() => folder?.[Symbol.dispose]());

/** @returns the program of this version */
async function installNode(version: string): Promise<string> {
  const older = join(folder.path, `node-${version}`);
  await mkdir(older);
  const name = `node-linux-${process.arch}`;
  await npm(older, 'install', '--prefix', older, `${name}@${version}`);
  return join(older, 'node_modules', name, 'bin/node');
}

/** @returns the path that it prints, which npm must take from every folder, even if the output is a relative path */
async function build(output: string): Promise<string> {
  const { stdout } = await run(BUILD, ['--version', VERSION, '--output', output], { env, cwd: folder.path });
  return stdout.trim();
}

const command = () => join(project, 'node_modules/latchkey-emulator/dist/lib/main.js');

/** Runs the installed command. */
function emulator(node: string, ...args: string[]) {
  return run(node, [command(), ...args], { env, timeout: scaleDeadline(20_000) });
}

/** Starts the installed command, and returns what it prints. */
async function start(node: string, ...args: string[]) {
  const child: ChildProcess = spawn(node, [command(), '--json', ...args], {
    env,
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  if (child.stdout === null) throw new Error('it has no output');
  const [line] = await once(createInterface({ input: child.stdout }), 'line');
  const started = v.parse(startedSchema, JSON.parse(String(line)));
  rememberSecrets([started.client_secret]);
  return {
    ...started,
    /** Ends it. @returns its exit status */
    async end(): Promise<number | null> {
      const ended = once(child, 'exit');
      child.kill('SIGTERM');
      const [status] = await ended;
      return status as number | null;
    },
  };
}

describe("the emulator's npm package", () => {
  it('two builds of the package give the same bytes', async () => {
    const hash = async (file: string) =>
      createHash('sha256')
        .update(await readFile(file))
        .digest('hex');
    expect(await hash(await build('second'))).toBe(await hash(tarball));
    expect(tarball).toMatch(new RegExp(`/latchkey-emulator-${VERSION}\\.tgz$`));
  });

  it('the package has its licence, changelog, README and types, and no code of the hub', async () => {
    const inside = join(project, 'node_modules/latchkey-emulator');
    expect((await readdir(inside)).sort()).toEqual(
      ['CHANGELOG.md', 'LICENSE', 'README.md', 'dist', 'docs', 'package.json', 'types'].sort(),
    );
    const manifest: unknown = JSON.parse(await readFile(join(inside, 'package.json'), 'utf8'));
    expect(manifest).toMatchObject({ name: 'latchkey-emulator', version: VERSION, license: 'MIT' });
    expect(manifest).toMatchObject({ homepage: 'https://maker.example' });
    for (const unset of ['bugs', 'repository']) expect(manifest).not.toHaveProperty(unset);
    const scripts = (await readdir(join(inside, 'dist'), { recursive: true })).filter((file) => file.endsWith('.js'));
    const sources = new Set<string>();
    for (const file of scripts) {
      const text = await readFile(join(inside, 'dist', file), 'utf8');
      expect(text).not.toContain('better-sqlite3');
      // The bundler names each source above its code.
      for (const [, source = ''] of text.matchAll(/^\/\/ ((?:src|scripts)\/\S+)$/gm)) sources.add(source);
    }
    expect(sources.size).toBeGreaterThan(50);
    const foreign =
      /^src\/(?!emulator\/|clouds\/|cli\/(emulator|terminal)\/|system\/|core\/(clock|failure|random)\.ts)/;
    expect([...sources].filter((source) => foreign.test(source))).toEqual([]);
    for (const absent of ['better-sqlite3', 'undici', 'bonjour-service']) {
      expect(await readdir(join(project, 'node_modules'))).not.toContain(absent);
    }
    const installed = await readdir(join(project, 'node_modules'), { recursive: true });
    expect(installed.filter((file) => /\.node$|binding\.gyp$/.test(file))).toEqual([]);
  });

  it('each link of the README leads to a file of the package', async () => {
    const inside = join(project, 'node_modules/latchkey-emulator');
    const readme = await readFile(join(inside, 'README.md'), 'utf8');
    const links = [...readme.matchAll(/\]\((?!https?:)([^)#]+)/g)].map(([, path = '']) => path);
    expect(links.length).toBeGreaterThan(5);
    for (const link of links) await readFile(join(inside, link));
    expect(readme).not.toMatch(/\.\/scripts\/|latchkey\/emulator/);
  });
});

describe.each(selectRows<22 | 24>([22, 24], [22]))("the emulator's npm package on Node.js %i", (major) => {
  it('npx runs the packed archive in an empty folder, and the command rejects wrong usage in words of its own', async () => {
    const empty = join(folder.path, `empty-${major}`);
    await mkdir(join(empty, 'bin'), { recursive: true });
    await symlink(nodes[major], join(empty, 'bin/node'));
    const archive = `./${basename(tarball)}`;
    await copyFile(tarball, join(empty, archive));
    const options = {
      cwd: empty,
      env: { ...env, PATH: `${empty}/bin:${env['PATH']}` },
      timeout: scaleDeadline(60_000),
    };
    const { stdout } = await run('npx', ['--yes', '--prefer-offline', archive, '--help'], options);
    expect(stdout).toMatch(/^Usage: latchkey-emulator \[options\] \[command\]\n/);
    expect((await run(nodes[major], ['--version'])).stdout).toMatch(new RegExp(`^v${major}\\.`));
    expect((await emulator(nodes[major], '--version')).stdout).toBe(`${VERSION}\n`);
    await expect(emulator(nodes[major], '--token-lifetime', 'soon')).rejects.toMatchObject({
      code: 2,
      stderr: expect.stringMatching(/^latchkey-emulator: .*--token-lifetime.*\n\(see "latchkey-emulator --help"\)\n$/),
    });
    await expect(emulator(nodes[major], 'exam', '--', 'sh', '-c', 'exit 3')).rejects.toMatchObject({
      code: 1,
      stderr: expect.stringMatching(/^latchkey-emulator: the program ended with status 3 /),
    });
  });

  it('the command serves its console over HTTPS, and continues with its state file', async () => {
    const state = join(folder.path, `state-${major}`);
    const args = ['--tls', '--state', state];
    const first = await start(nodes[major], ...args);
    const ca = await readFile(first.ca_file ?? '', 'utf8');
    await using resources = new AsyncDisposableStack();
    const dispatcher = resources.adopt(new Agent({ connect: { ca } }), (agent) => agent.close());
    const get = async (url: string | URL) => {
      const { statusCode, body } = await request(url, { dispatcher });
      return [statusCode, await body.text()] as const;
    };
    const [status, page] = await get(first.console_url);
    expect([status, page]).toEqual([200, expect.stringContaining('/_emulator/console/main.js')]);
    expect((await get(new URL('/_emulator/console/main.js', first.base_url)))[0]).toBe(200);
    expect(JSON.parse((await get(new URL('/_emulator/openapi.json', first.base_url)))[1])).toHaveProperty('openapi');

    await expect(emulator(nodes[major], ...args)).rejects.toMatchObject({
      code: 1,
      stderr: expect.stringContaining(`the state file ${state} is in use by another emulator`),
    });
    expect(await first.end()).toBe(0);
    const second = await start(nodes[major], ...args);
    expect(second.client_id).toBe(first.client_id);
    expect(await readFile(second.ca_file ?? '', 'utf8')).toBe(ca);
    expect(await second.end()).toBe(0);
  });
});

it.each([22, 24] as const)(
  "the library of the emulator's npm package works on Node.js %i as the README says",
  async (major) => {
    const file = join(project, `use-${major}.mjs`);
    await writeFile(
      file,
      `import { startEmulator } from 'latchkey-emulator';
const portal = await startEmulator({ tokenLifetime: 10, onReuse: 'revoke-family' });
try {
  console.log((await fetch(portal.consoleUrl)).status);
} finally {
  await portal.close();
}
`,
    );
    const { stdout } = await run(nodes[major], [file], { env, timeout: scaleDeadline(20_000) });
    expect(stdout).toBe('200\n');
  },
);

it('on an older Node.js, the library and the programs say in one line which one they need', async () => {
  const say = (...args: string[]) =>
    run(nodes[20], args, { env, cwd: project }).catch((error: { stderr: string }) => error);
  const file = join(project, 'too-old.mjs');
  await writeFile(file, "import 'latchkey-emulator';\n");
  const line = (name: string) =>
    new RegExp(`^(Error: )?${name}: this is Node\\.js 20\\.\\S+, but \\S+ or later is required`, 'm');
  expect(await say(file)).toMatchObject({ stderr: expect.stringMatching(line('latchkey-emulator')) });
  const programs = { 'latchkey-emulator': command(), latchkey: join(ROOT, 'dist/main.js') };
  for (const [name, program] of Object.entries(programs)) {
    expect(await say(program, '--version')).toMatchObject({ code: 1, stderr: expect.stringMatching(line(name)) });
  }
});
