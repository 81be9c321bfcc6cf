import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { type ControlServer, startControlServer } from '../../src/control/server.ts';
import { createLog } from '../../src/system/log.ts';
import { FakeAdministration } from '../control/fake-administration.ts';
import type { HubProcess } from '../support/hub-process.ts';
import { MAIN, SHARED_CACHE } from '../support/program.ts';
import { setUpOnce } from '../support/set-up.ts';
import { type CliResult, type RunningCommand, watchCommand } from './running-command.ts';
import { startInSharedProcess } from './shared-process.ts';

/** An empty home directory, so that commands don't find a hub of this machine. */
const home = mkdtempSync(join(tmpdir(), 'lk-'));

const environment: NodeJS.ProcessEnv = {
  PATH: process.env['PATH'],
  HOME: home,
  XDG_STATE_HOME: home,
  XDG_CACHE_HOME: SHARED_CACHE,
  LATCHKEY_CONFIG: '/dev/null',
};

/**
 * Starts `latchkey` with these arguments in a process that has run other commands;
 * test/release/cli/shared-process.test.ts compares it with a new process.
 * @param input its standard input
 */
export function startLatchkey(
  args: readonly string[],
  env: NodeJS.ProcessEnv = {},
  input: string | null = null,
): RunningCommand {
  return startInSharedProcess({ args, env: { ...environment, ...env }, ...(input !== null && { input }) });
}

/** Runs `latchkey` with these arguments as {@link startLatchkey} does. */
export function runLatchkey(...command: Parameters<typeof startLatchkey>): Promise<CliResult> {
  return startLatchkey(...command).ended;
}

/** Starts a command against a hub as {@link startLatchkey} does. */
export function startOn(hub: HubProcess, ...args: string[]): RunningCommand {
  return startLatchkey([...args, '--config', join(hub.directory, 'latchkey.toml')]);
}

/** Runs a command with `--json` against a hub, and returns its result. */
export async function jsonOn<Result>(hub: HubProcess, ...args: string[]): Promise<Result> {
  return JSON.parse((await startOn(hub, ...args, '--json').ended).stdout) as Result;
}

/** Starts `latchkey` with these arguments in a process of its own. */
export function spawnLatchkey(args: readonly string[], env: NodeJS.ProcessEnv = {}): RunningCommand {
  return watchProcess(spawn(process.execPath, [MAIN, ...args], { env: { ...environment, ...env } }));
}

/** Runs a shell command in which `$LATCHKEY` is the program: one word, even if the checkout's path has spaces. */
export function runShell(command: string, env: NodeJS.ProcessEnv = {}): Promise<CliResult> {
  const LATCHKEY = join(mkdtempSync(join(tmpdir(), 'lk-')), 'latchkey');
  writeFileSync(LATCHKEY, `#!/bin/sh\nexec ${quoted(process.execPath)} ${quoted(MAIN)} "$@"\n`, { mode: 0o755 });
  chmodSync(dirname(LATCHKEY), 0o755);
  return watchProcess(spawn('/usr/bin/bash', ['-c', command], { env: { ...environment, LATCHKEY, ...env } })).ended;
}

/** Starts `latchkey` on a pseudoterminal as {@link startLatchkey} does; all of its output comes as standard output. */
export function startOnTerminal(
  args: readonly string[],
  env: NodeJS.ProcessEnv = {},
  columns = 120,
  rows = 50,
): RunningCommand {
  const screen = { columns, rows };
  return startInSharedProcess({ args, env: { ...environment, TERM: 'xterm-256color', ...env }, screen });
}

/** Starts `latchkey` on a pseudoterminal, in a process of its own. */
export function spawnOnTerminal(args: readonly string[], env: NodeJS.ProcessEnv = {}): RunningCommand {
  const command = [process.execPath, MAIN, ...args].map(quoted).join(' ');
  const script = ['-qefc', `stty cols 120 rows 50; exec ${command}`, '/dev/null'];
  return watchProcess(spawn('/usr/bin/script', script, { env: { ...environment, TERM: 'xterm-256color', ...env } }));
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

function watchProcess(child: ChildProcess): RunningCommand {
  return watchCommand(child, async () => {
    const [status, signal] = await once(child, 'close');
    return { status, signal };
  });
}
