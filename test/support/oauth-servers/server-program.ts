import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createWriteStream } from 'node:fs';
import { createInterface } from 'node:readline';
import { request } from 'undici';
import { logFile } from '../logs.ts';

/** A server's process. */
export interface ServerProgram extends AsyncDisposable {
  /** The first line that it printed. */
  readonly firstLine: string;
}

export interface ServerProgramOptions {
  readonly env?: NodeJS.ProcessEnv;
  readonly cwd?: string;
}

/**
 * Starts a server that prints a line when it listens.
 * @param name for its log
 * @throws Error if it exits first
 */
export async function startServerProgram(
  name: string,
  [file = '', ...args]: readonly string[],
  { env = {}, cwd }: ServerProgramOptions = {},
): Promise<ServerProgram> {
  const child = spawn(file, args, {
    cwd,
    env: { PATH: process.env['PATH'], HOME: '/nonexistent', PYTHONDONTWRITEBYTECODE: '1', ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const log = logFile(name);
  child.stderr.pipe(createWriteStream(log, { mode: 0o600 }));
  const failed = new Promise<never>((_, reject) => child.once('error', reject));
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  const { done, value } = await Promise.race([lines.next(), failed]);
  if (done === true) throw new Error(`${name} exited: ${child.exitCode ?? child.signalCode}; see ${log}`);
  child.stdout.resume();
  return { firstLine: value, [Symbol.asyncDispose]: () => kill(child) };
}

/** Ends a process at once. */
async function kill(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  child.kill('SIGKILL');
  await once(child, 'exit');
}

/** The path beside a server's own where its program counts (GET) and revokes (DELETE) refresh tokens. */
export const CONTROL_PATH = '/_control/refresh-tokens';

/** @param origin of a program that serves the control path */
export function refreshTokenControl(origin: string) {
  async function ask(method: 'GET' | 'DELETE'): Promise<number> {
    const { statusCode, body } = await request(origin + CONTROL_PATH, { method });
    if (statusCode !== 200) throw new Error(`${method} ${CONTROL_PATH} got HTTP ${statusCode}: ${await body.text()}`);
    return Number(await body.text());
  }
  return {
    countRefreshTokens: () => ask('GET'),
    async revokeRefreshTokens() {
      await ask('DELETE');
    },
  };
}
