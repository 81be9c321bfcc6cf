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

/** An empty home, so that no hub of this machine's own is found. */
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
  /** Resolves when what was written so far matches; rejects where the command ends before. */
  stdout(pattern: RegExp): Promise<string>;
  stderr(pattern: RegExp): Promise<string>;
}

/** Starts `latchkey` with these arguments. What it says on standard error is kept among the tests' logs. */
export function startLatchkey(args: readonly string[], env: NodeJS.ProcessEnv = {}): RunningCommand {
  return watch(spawn(process.execPath, [MAIN, ...args], { env: { ...environment, ...env } }));
}

/** Runs `latchkey` with these arguments to its end, in a process that has run others: kept.test.ts compares. */
export function runLatchkey(args: readonly string[], env: NodeJS.ProcessEnv = {}): Promise<CliResult> {
  return runInSharedProcess({ args, env: { ...environment, ...env } });
}

/** Runs a shell command in which `$LATCHKEY` is the program: one word, whatever the checkout's path is like. */
export function runShell(command: string, env: NodeJS.ProcessEnv = {}): Promise<CliResult> {
  const LATCHKEY = join(mkdtempSync(join(tmpdir(), 'lk-')), 'latchkey');
  writeFileSync(LATCHKEY, `#!/bin/sh\nexec ${quoted(process.execPath)} ${quoted(MAIN)} "$@"\n`, { mode: 0o755 });
  chmodSync(dirname(LATCHKEY), 0o755);
  return watch(spawn('bash', ['-c', command], { env: { ...environment, LATCHKEY, ...env } })).ended;
}

/** Starts `latchkey` on a terminal of its own (a real pty); all it writes comes as standard output. */
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

/** A hub's control socket with a household behind it. */
export async function serveFakeAdministration() {
  const hub = household();
  const server = await serve(hub);
  return { ...hub, [Symbol.asyncDispose]: () => server[Symbol.asyncDispose]() };
}

/** The same for all tests of a file, from the first to the last. */
export function shareFakeAdministration() {
  const hub = household();
  setUpOnce(async (parts) => void parts.use(await serve(hub)));
  return hub;
}

/** A household with the command line that speaks to it, once it is served. */
function household() {
  const env = { LATCHKEY_HUB_CONTROL_SOCKET: join(mkdtempSync(join(tmpdir(), 'lk-')), 'control.sock') };
  return {
    household: new FakeAdministration(),
    env,
    latchkey: (...args: string[]) => runLatchkey(args, env),
    start: (...args: string[]) => startLatchkey(args, env),
    onTerminal: (...args: string[]) => startOnTerminal(args, env),
  };
}

function serve({ household: administration, env }: ReturnType<typeof household>): Promise<ControlServer> {
  return startControlServer({ path: env.LATCHKEY_HUB_CONTROL_SOCKET, administration, log: createLog('silent') });
}

/** As one word for a shell. */
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
