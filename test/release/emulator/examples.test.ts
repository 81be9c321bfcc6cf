import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, globSync, mkdirSync, openSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { createInterface } from 'node:readline';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { readExample, readExamples } from '../../emulator/examples/guide.ts';
import type { Tokens } from '../../emulator/portal-client.ts';
import { root, runCommand, temporaryFolder } from '../../project/checkout.ts';
import { logFile, rememberSecrets } from '../../support/logs.ts';

/** A separate project in its own folder, with the emulator's npm package. */
interface PackedProject extends Disposable {
  readonly path: string;
  /** The emulator's program, as installed. */
  readonly main: string;
  /** Writes a file; its path is relative to the project's folder. */
  write(path: string, text: string): void;
}

/**
 * Builds the npm package and unpacks it into a new project. From the packages of the checkout, the project sees only
 * those that the emulator depends on, and `more`: the project's own dependencies.
 */
async function createPackedProject(...more: readonly string[]): Promise<PackedProject> {
  const folder = temporaryFolder();
  const path = folder.path;
  const built = await runCommand(join(root, 'scripts/build-emulator-package'), ['--output', path]);
  const installed = join(path, 'node_modules/latchkey-emulator');
  mkdirSync(installed, { recursive: true });
  const tarball = built.stdout.trim();
  const unpack = await runCommand('/usr/bin/tar', ['-xzf', tarball, '-C', installed, '--strip-components=1']);
  if (built.status !== 0 || unpack.status !== 0) throw new Error(`packing failed: ${built.stderr}${unpack.stderr}`);
  const { dependencies } = JSON.parse(readFileSync(join(installed, 'package.json'), 'utf8')) as {
    readonly dependencies: Readonly<Record<string, string>>;
  };
  for (const name of [...Object.keys(dependencies), ...more]) {
    const link = join(path, 'node_modules', name);
    mkdirSync(dirname(link), { recursive: true });
    symlinkSync(join(root, 'node_modules', name), link);
  }
  const write: PackedProject['write'] = (file, text) => {
    mkdirSync(dirname(join(path, file)), { recursive: true });
    writeFileSync(join(path, file), text);
  };
  const manifest = { name: 'scratch', private: true, type: 'module', jest: { transform: {} } };
  write('package.json', JSON.stringify(manifest));
  return { path, main: join(installed, 'dist/lib/main.js'), write, [Symbol.dispose]: () => folder[Symbol.dispose]() };
}

interface FirstLine {
  readonly base_url: string;
  readonly frontend_url: string;
  readonly client_id: string;
  readonly client_secret: string;
  readonly ca_file?: string;
}

let project: PackedProject;
beforeAll(async () => {
  project = await createPackedProject('vitest', '@types/node', 'typescript', 'openid-client');
});
afterAll(() => project?.[Symbol.dispose]());

/** The packed emulator in its own process. */
async function launch(...args: string[]) {
  const child = spawn(process.execPath, [project.main, '--json', ...args], {
    cwd: project.path,
    stdio: ['ignore', 'pipe', openSync(logFile('example'), 'w')],
  });
  if (child.stdout === null) throw new Error('no output');
  const [line] = (await once(createInterface({ input: child.stdout }), 'line')) as [string];
  const first = JSON.parse(line) as FirstLine;
  rememberSecrets([first.client_secret]);
  const env = { ...process.env, BASE: first.base_url, ID: first.client_id, SECRET: first.client_secret };
  return { first, env, [Symbol.dispose]: () => void child.kill('SIGKILL') };
}

const TSCONFIG = {
  compilerOptions: {
    target: 'es2024',
    lib: ['es2024', 'esnext.disposable'],
    module: 'nodenext',
    types: ['node'],
    noEmit: true,
    allowImportingTsExtensions: true,
    strict: true,
    skipLibCheck: false,
    noUncheckedIndexedAccess: true,
    exactOptionalPropertyTypes: true,
    noImplicitOverride: true,
    verbatimModuleSyntax: true,
    erasableSyntaxOnly: true,
  },
  include: ['src', 'test'],
};

/** Every name that the package exports, used with its type. */
const SURFACE = `import {
  ClockError, type ClockView, type ClientOptions, type DeviceApproval, type EarlyRefreshes, type Emulator, type EmulatorClock,
  type EmulatorOptions, type Endpoint, type InterceptedRequest, type FailedAuthentications, FaultError, type FaultOptions, type FastPolls,
  type FaultView, type Findings, type GrantFinding, type GrantView, type Interceptor, type LoggedRequest, LoginError,
  type LoginRequest, type LoginResult, type Observations, OptionError, parseFault, type Poll, type PollFindings,
  parseClient, parseUser, type SecretKind, startEmulator, StateFileError, type Settings, type SettingOptions, type UserOptions, type WaitingDevice, type WaitingLogin,
} from 'latchkey-emulator';

export type All = [
  ClockView, ClientOptions, DeviceApproval, EarlyRefreshes, FastPolls, WaitingDevice, Emulator, EmulatorClock, EmulatorOptions, Endpoint, InterceptedRequest,
  FailedAuthentications, FaultOptions, FaultView, Findings, GrantFinding, GrantView, Interceptor, LoggedRequest,
  LoginRequest, LoginResult, Observations, Poll, PollFindings, SecretKind, Settings, SettingOptions, UserOptions,
  WaitingLogin,
];
const clients: ClientOptions[] = [parseClient({ id: crypto.randomUUID(), secret: 's' })];
const users: UserOptions[] = [parseUser({ name: 'ann', password: 'pw' })];
const portal: Emulator = await startEmulator({ clients, users, onReuse: 'refuse' });
const fault: FaultView = portal.addFault(parseFault('{"kind":"hang","endpoint":"token"}'));
const settings: Settings = portal.settings;
console.log(typeof fault.id, settings.tokenLifetime + portal.clock.offset);
for (const error of [ClockError, FaultError, LoginError, OptionError, StateFileError]) console.log(error.name);
await portal.close();
// @ts-expect-error: there is no such option
export const wrong: EmulatorOptions = { tokenLiftime: 10 };
// @ts-expect-error: a fault of this kind says so many seconds
export const late: FaultOptions = { kind: 'delay', endpoint: 'token' };
`;

test('the package exports the emulator library with types that pass strict checks, also without skipLibCheck', async () => {
  const exported = readFileSync(join(root, 'src/emulator/index.ts'), 'utf8').replaceAll(
    / from '.*?';|export|type/g,
    '',
  );
  const names = new Set(exported.match(/\b[A-Za-z]+\b/g));
  expect([...names].filter((name) => !SURFACE.includes(name))).toEqual([]);

  project.write('tsconfig.json', JSON.stringify(TSCONFIG));
  project.write('src/surface.ts', SURFACE);
  project.write('src/start.ts', readExample('Start it', 'ts'));
  project.write('src/my-client.ts', readFileSync(join(import.meta.dirname, 'examples/my-client.ts'), 'utf8'));
  project.write('test/guide.test.ts', readExample('In a vitest test', 'ts'));
  const types = await runCommand(process.execPath, ['node_modules/typescript/bin/tsc'], { cwd: project.path });
  expect(types.stdout).toBe('');
  expect(types.status).toBe(0);
  const ran = await runCommand(process.execPath, ['src/surface.ts'], { cwd: project.path });
  expect(ran).toMatchObject({ status: 0, stderr: '' });
  expect(ran.stdout).toBe('string 3600\nClockError\nFaultError\nLoginError\nOptionError\nStateFileError\n');
  expect(globSync('node_modules/latchkey-emulator/**/*.ts', { cwd: project.path, exclude: ['**/*.d.ts'] })).toEqual([]);
});

/** The variables for a test runner: without those of the one that runs this test. */
const runnerEnvironment = () => {
  const others = Object.entries(process.env).filter(
    ([name]) => !/^(VITEST|JEST|NODE_OPTIONS|NODE_TEST|TEST$)/.test(name),
  );
  return { ...Object.fromEntries(others), NO_COLOR: '1' };
};
// A busy machine needs longer than the five seconds that vitest and jest give a test.
const VITEST = ['node_modules/vitest/vitest.mjs', 'run', '--reporter=verbose', '--testTimeout=60000'];
const JEST = ['--experimental-vm-modules', 'node_modules/jest/bin/jest.js', '--testTimeout=60000'];

test.each([
  ["Node's test runner", "import { test } from 'node:test';\n", ['--test'], /pass 1\n/],
  ['vitest', "import { test } from 'vitest';\n", VITEST, /Tests +1 passed/],
  ['jest', '', JEST, /Tests: +1 passed/],
])("the guide's test of a login with code and PKCE passes in %s", async (runner, firstLine, command, passed) => {
  if (runner === 'jest') await installJest();
  const [, ...lines] = readExample('A login with code and PKCE', 'ts').split('\n');
  project.write('test/login.test.js', `${firstLine}${lines.join('\n')}`);
  const args = [...command, 'test/login.test.js'];
  const ran = await runCommand(process.execPath, args, { cwd: project.path, env: runnerEnvironment() });
  expect(ran.stdout + ran.stderr).toMatch(passed);
  expect(ran.status).toBe(0);
});

/** In a folder of its own, because npm would remove the links of the project. */
async function installJest(): Promise<void> {
  const folder = join(project.path, 'jest');
  const options = ['--prefix', folder, '--no-audit', '--no-fund', '--loglevel=error', '--prefer-offline'];
  const { status, stderr } = await runCommand('npm', ['install', ...options, 'jest@30']);
  expect(status, stderr).toBe(0);
  symlinkSync(join(folder, 'node_modules/jest'), join(project.path, 'node_modules/jest'));
}

test('the vitest test of the guide passes', async () => {
  project.write('src/my-client.ts', readFileSync(join(import.meta.dirname, 'examples/my-client.ts'), 'utf8'));
  project.write('test/guide.test.ts', readExample('In a vitest test', 'ts'));
  const args = [...VITEST, 'test/guide.test.ts'];
  const ran = await runCommand(process.execPath, args, { cwd: project.path, env: runnerEnvironment() });
  expect(ran.stdout).toMatch(/✓ .*a lost answer costs no login/);
  expect(ran.stdout).toMatch(/Tests +1 passed/);
  expect(ran.status).toBe(0);
});

test('the options file of the guide is accepted by the emulator', async () => {
  project.write('emulator.toml', readExample('Start it', 'toml'));
  using emulator = await launch('--options', 'emulator.toml');
  const shown = async (path: string) => (await fetch(`${emulator.first.base_url}/_emulator/${path}`)).json();
  expect(emulator.first.client_secret).toBe('shop-secret');
  expect(await shown('settings')).toMatchObject({ token_lifetime: 60, on_reuse: 'revoke-family' });
  expect(await shown('faults')).toMatchObject({ faults: [{ kind: 'commit_then_drop', left: 1 }] });
});

test("the guide's code flow in a shell gets tokens and refreshes them, with its commands as they are", async () => {
  const [start = '', commands = ''] = readExamples('The code flow in a shell', 'sh', 'docs/emulator.md');
  const [, , ...args] = start.trim().split(' ');
  // Any free port, because another program may use those of the guide.
  using emulator = await launch(...args.map((arg) => arg.replace(/^900\d$/, '0')));
  project.write('code.sh', commands.replace('http://127.0.0.1:9001', emulator.first.frontend_url));
  const ran = await runCommand('/bin/sh', ['-eu', 'code.sh'], { cwd: project.path });
  expect(ran).toMatchObject({ status: 0, stderr: '' });
  expect(JSON.parse(ran.stdout)).toMatchObject({ token_type: 'bearer', refresh_token: expect.stringMatching(/./) });
});

test('the shell script of the guide pairs, refreshes and gets its user from the cloud API', async () => {
  project.write('pair.sh', readExample("The helper's flow in a shell", 'sh'));
  using emulator = await launch();
  const ran = await runCommand('/bin/sh', ['-eu', 'pair.sh'], { cwd: project.path, env: emulator.env });
  expect(ran).toEqual({ status: 0, stdout: '{"user":"demo","scope":null}', stderr: '' });
});

test('the Python appliance of the guide waits for a login, pairs and refreshes', async () => {
  project.write('appliance.py', readExample('An appliance in Python', 'python'));
  using emulator = await launch('--auto-login');
  const child = spawn('/usr/bin/python3', ['appliance.py'], {
    cwd: project.path,
    env: emulator.env,
    stdio: ['ignore', 'pipe', openSync(logFile('example'), 'w')],
  });
  if (child.stdout === null) throw new Error('no output');
  using _ = { [Symbol.dispose]: () => void child.kill('SIGKILL') };
  const ended = once(child, 'close');
  const lines = createInterface({ input: child.stdout });
  const output = lines[Symbol.asyncIterator]();
  const line = (await output.next()).value as string;
  const link = /^Please log in: (http:\S+)$/.exec(line)?.[1] ?? '';
  // By now the client has polled in vain, or it will: in both cases it must poll again.
  expect((await fetch(link)).status).toBe(200);
  expect((await output.next()).value).toBe('Paired, for 3600 s');
  expect(await ended).toEqual([0, null]);
});

/** Debian's libc6-dev, gcc and libcurl4-openssl-dev. */
const C_COMPILER = existsSync('/usr/bin/cc') && globSync('/usr/include/{*/,}curl/curl.h').length > 0;

test.skipIf(!C_COMPILER)(
  'the C appliance of the guide refreshes, also over TLS, and reports when its grant is in doubt',
  async () => {
    project.write('refresh.c', readExample('An appliance in C', 'c'));
    const options = ['-std=c11', '-Wall', '-Wextra', '-Werror', '-o', 'refresh', 'refresh.c', '-lcurl'];
    expect(await runCommand('/usr/bin/cc', options, { cwd: project.path })).toEqual({
      status: 0,
      stdout: '',
      stderr: '',
    });
    for (const tls of [[], ['--tls']]) {
      using emulator = await launch(...tls);
      const { frontend_url, client_id, client_secret, ca_file } = emulator.first;
      project.write(
        'pair.sh',
        readExample("The helper's flow in a shell", 'sh').replace(
          /^tokens=[^\n]*refresh_token -d.*/ms,
          'echo "$tokens"\n',
        ),
      );
      const env = { ...emulator.env, CURL_CA_BUNDLE: ca_file ?? '' };
      const paired = await runCommand('/bin/sh', ['-eu', 'pair.sh'], { cwd: project.path, env });
      const refresh = async (token: string, ca = ca_file) => {
        const args = [`${frontend_url}/sso/token`, client_id, client_secret, token];
        const ran = await runCommand(join(project.path, 'refresh'), args, {
          env: ca === undefined ? {} : { CA_FILE: ca },
        });
        return { ...ran, tokens: ran.status === 0 ? (JSON.parse(ran.stdout) as Tokens) : null };
      };
      const first = (JSON.parse(paired.stdout) as Tokens).refresh_token;
      const second = await refresh(first);
      expect(second).toMatchObject({ status: 0, stderr: '', tokens: { token_type: 'bearer', expires_in: 3600 } });
      expect(await refresh(first)).toMatchObject({ status: 1, stdout: expect.stringContaining('"invalid_grant"') });
      const held = second.tokens?.refresh_token ?? '';
      rememberSecrets([first, held]);
      if (ca_file !== undefined) {
        expect(await refresh(held, '/etc/hostname')).toMatchObject({ status: 1, stdout: '' });
        continue;
      }
      await fetch(`${emulator.first.base_url}/_emulator/faults`, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: '{"kind":"commit_then_drop","endpoint":"token"}',
      });
      expect(await refresh(held)).toMatchObject({ status: 1, stdout: '', stderr: expect.stringContaining('in doubt') });
    }
  },
);
