import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createWriteStream, existsSync } from 'node:fs';
import { createInterface } from 'node:readline';
import { logFile, rememberSecrets } from '../../../support/logs.ts';
import { CLIENT } from './oauth-server.ts';

/** Why a server can't run here: what is missing of its packages; null if nothing is. */
export function missingFilesReason(files: readonly string[]): string | null {
  const missing = files.filter((file) => !existsSync(file));
  return missing.length === 0 ? null : `missing: ${missing.join(', ')}`;
}

/** Starts a program that prints the port of its server when it listens. */
export async function startServerOnOwnPort(
  name: string,
  command: readonly string[],
): Promise<AsyncDisposable & { readonly origin: string }> {
  const { child, ended } = spawnServer(name, command);
  const printed = once(createInterface({ input: child.stdout }), 'line');
  const [port] = await Promise.race([printed, ended]);
  return { origin: `http://127.0.0.1:${port}`, [Symbol.asyncDispose]: () => kill(child) };
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
