import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createWriteStream, existsSync } from 'node:fs';
import { createInterface } from 'node:readline';
import { logFile, rememberSecrets } from '../../../support/logs.ts';
import { waitFor } from '../../../support/wait-for.ts';
import { CLIENT } from './oauth-server.ts';

/** Why a server can't run here: what is missing of its packages; null if nothing is. */
export function missingFilesReason(files: readonly string[]): string | null {
  const missing = files.filter((file) => !existsSync(file));
  return missing.length === 0 ? null : `missing: ${missing.join(', ')}`;
}

/**
 * Starts a server, and ends it when it is disposed of.
 * @param name for its log
 * @param isReady rejects until the server listens
 * @throws Error if it exits before
 */
export async function startServer(
  name: string,
  command: readonly string[],
  isReady: () => Promise<unknown>,
): Promise<AsyncDisposable> {
  const { child, ended } = spawnServer(name, command);
  try {
    await Promise.race([waitFor(isReady), ended]);
  } catch (error) {
    await kill(child);
    throw error;
  }
  return { [Symbol.asyncDispose]: () => kill(child) };
}

/** Starts a program that prints the ports of its servers when they listen: one, or a list as JSON. */
export async function startServerOnOwnPort(
  name: string,
  command: readonly string[],
): Promise<AsyncDisposable & { readonly origin: string; readonly ports: readonly number[] }> {
  const { child, ended } = spawnServer(name, command);
  const printed = once(createInterface({ input: child.stdout }), 'line');
  const [line] = await Promise.race([printed, ended]);
  const ports: number[] = [JSON.parse(line)].flat();
  return { origin: `http://127.0.0.1:${ports[0]}`, ports, [Symbol.asyncDispose]: () => kill(child) };
}

function spawnServer(name: string, [program = '', ...args]: readonly string[]) {
  rememberSecrets([CLIENT.secret]);
  const child = spawn(program, args, {
    env: { PATH: process.env['PATH'], HOME: '/nonexistent', PYTHONDONTWRITEBYTECODE: '1' },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const file = logFile(name);
  const log = createWriteStream(file, { mode: 0o600 });
  for (const output of [child.stdout, child.stderr]) output.pipe(log, { end: false });
  const { promise: ended, reject } = Promise.withResolvers<never>();
  child.once('error', reject);
  child.once('close', (code, signal) => {
    log.end();
    reject(new Error(`${name} ended (${code ?? signal}); its log is ${file}`));
  });
  // It ends when the tests are done, too.
  ended.catch(() => undefined);
  return { child, ended };
}

/** Ends a process at once. */
async function kill(child: ChildProcess): Promise<void> {
  if (child.pid === undefined || child.exitCode !== null || child.signalCode !== null) return;
  child.kill('SIGKILL');
  await once(child, 'exit');
}
