import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { appendFileSync, chmodSync, mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { type ControlServer, startControlServer } from '../../src/control/server.ts';
import { createLog } from '../../src/system/log.ts';
import { FakeAdministration } from '../control/fake-administration.ts';
import { logFile } from '../support/logs.ts';
import { MAIN, SHARED_CACHE } from '../support/program.ts';
import { setUpOnce } from '../support/set-up.ts';
import { type CliResult, runInSharedProcess } from './shared-process.ts';

/** An empty home directory, so that commands don't find a hub of this machine. */
const home = mkdtempSync(join(tmpdir(), 'lk-'));

const environment: NodeJS.ProcessEnv = {
  PATH: process.env['PATH'],
  HOME: home,
  XDG_STATE_HOME: home,
  XDG_CACHE_HOME: SHARED_CACHE,
  LATCHKEY_CONFIG: '/dev/null',
};

/** A running command. */
export interface RunningCommand {
  readonly process: ChildProcess;
  readonly ended: Promise<CliResult>;
  /** Resolves when the output so far matches; rejects if the command ends before. */
  stdout(pattern: RegExp): Promise<string>;
  stderr(pattern: RegExp): Promise<string>;
}

/** Starts `latchkey` with these arguments. Its standard error goes into the tests' logs. */
export function startLatchkey(args: readonly string[], env: NodeJS.ProcessEnv = {}): RunningCommand {
  return watch(spawn(process.execPath, [MAIN, ...args], { env: { ...environment, ...env } }));
}

/** Runs `latchkey` with these arguments in the shared process; shared-process.test.ts compares it with a new process. */
export function runLatchkey(args: readonly string[], env: NodeJS.ProcessEnv = {}): Promise<CliResult> {
  return runInSharedProcess({ args, env: { ...environment, ...env } });
}

/** Runs a shell command in which `$LATCHKEY` is the program: one word, even if the checkout's path has spaces. */
export function runShell(command: string, env: NodeJS.ProcessEnv = {}): Promise<CliResult> {
  const LATCHKEY = join(mkdtempSync(join(tmpdir(), 'lk-')), 'latchkey');
  writeFileSync(LATCHKEY, `#!/bin/sh\nexec ${quoted(process.execPath)} ${quoted(MAIN)} "$@"\n`, { mode: 0o755 });
  chmodSync(dirname(LATCHKEY), 0o755);
  return watch(spawn('bash', ['-c', command], { env: { ...environment, LATCHKEY, ...env } })).ended;
}

/** Starts `latchkey` on a new pseudoterminal; all of its output comes as standard output. */
export function startOnTerminal(
  args: readonly string[],
  env: NodeJS.ProcessEnv = {},
  columns = 120,
  rows = 50,
): RunningCommand {
  const command = [process.execPath, MAIN, ...args].map(quoted).join(' ');
  const script = ['-qefc', `stty cols ${columns} rows ${rows}; exec ${command}`, '/dev/null'];
  return watch(spawn('script', script, { env: { ...environment, TERM: 'xterm-256color', ...env } }));
}

/** Serves a {@link FakeAdministration} on a control socket. */
export async function serveFakeAdministration() {
  const hub = createFakeHub();
  const server = await serve(hub);
  return { ...hub, [Symbol.asyncDispose]: () => server[Symbol.asyncDispose]() };
}

/** Like {@link serveFakeAdministration}, once for all tests of a file. */
export function shareFakeAdministration() {
  const hub = createFakeHub();
  setUpOnce(async (parts) => void parts.use(await serve(hub)));
  return hub;
}

/** A {@link FakeAdministration}, and functions that run the command line against it once it is served. */
function createFakeHub() {
  const env = { LATCHKEY_HUB_CONTROL_SOCKET: join(mkdtempSync(join(tmpdir(), 'lk-')), 'control.sock') };
  return {
    administration: new FakeAdministration(),
    env,
    latchkey: (...args: string[]) => runLatchkey(args, env),
    start: (...args: string[]) => startLatchkey(args, env),
    onTerminal: (...args: string[]) => startOnTerminal(args, env),
  };
}

function serve({ administration, env }: ReturnType<typeof createFakeHub>): Promise<ControlServer> {
  return startControlServer({ path: env.LATCHKEY_HUB_CONTROL_SOCKET, administration, log: createLog('silent') });
}

/** Quotes a word for a shell. */
function quoted(word: string): string {
  return `'${word.replaceAll("'", "'\\''")}'`;
}

function watch(child: ChildProcess): RunningCommand {
  const written = { stdout: '', stderr: '' };
  const log = logFile('latchkey-stderr');
  for (const name of ['stdout', 'stderr'] as const) {
    child[name]?.setEncoding('utf8').on('data', (text: string) => {
      written[name] += text;
      if (name === 'stderr') appendFileSync(log, text);
      child.emit('written');
    });
  }
  const ended = once(child, 'close').then(([status, signal]) => {
    child.emit('written');
    return { status, signal, ...written };
  });
  let over = false;
  void ended.then(() => {
    over = true;
  });
  async function seen(name: 'stdout' | 'stderr', pattern: RegExp): Promise<string> {
    while (!pattern.test(written[name])) {
      if (over) throw new Error(`it ended before ${pattern}: ${JSON.stringify(written)}`);
      await Promise.race([once(child, 'written'), ended]);
    }
    return written[name];
  }
  return {
    process: child,
    ended,
    stdout: (pattern) => seen('stdout', pattern),
    stderr: (pattern) => seen('stderr', pattern),
  };
}
