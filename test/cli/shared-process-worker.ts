// Runs commands of the built program one after another, each with its own arguments and environment. A NUL ends the
// output of each command on each standard stream; the exit status is sent to the parent process.
import { spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { dirname, join } from 'node:path';
import { Readable } from 'node:stream';
import { MAIN } from '../support/program.ts';

/** The message that requests a command. */
export interface SharedProcessCommand {
  readonly args: readonly string[];
  readonly env: NodeJS.ProcessEnv;
  /** Its standard input; by default the one of the process. */
  readonly input?: string;
  /** The size of its terminal; undefined for a command without one. */
  readonly screen?: { readonly columns: number; readonly rows: number };
}

const { run } = (await import(join(dirname(MAIN), 'cli/program.js'))) as typeof import('../../src/cli/program.ts');
const { exit, stdin, stdout, stderr } = process;

process.on('message', async ({ args, env, input, screen }: SharedProcessCommand) => {
  for (const name of Object.keys(process.env)) delete process.env[name];
  Object.assign(process.env, env);
  process.exitCode = 0;
  if (screen !== undefined) await resize(screen.columns, screen.rows);
  const value = input === undefined ? stdin : Readable.from([Buffer.from(input)], { objectMode: false });
  Object.defineProperty(process, 'stdin', { value });
  const exited = Promise.withResolvers<void>();
  process.exit = ((status?: number) => {
    if (status !== undefined) process.exitCode = status;
    exited.resolve();
  }) as typeof process.exit;
  await Promise.race([run(args), exited.promise]);
  // A terminal is one stream.
  for (const stream of screen === undefined ? [stdout, stderr] : [stdout])
    await new Promise((resolve) => stream.write('\0', resolve));
  // What a command has added for itself must not act in the next one.
  for (const event of ['SIGINT', 'SIGTERM', 'SIGHUP', 'SIGTSTP', 'SIGCONT', 'uncaughtException'])
    process.removeAllListeners(event);
  for (const stream of [stdout, stderr]) stream.removeAllListeners('error');
  process.send?.(process.exitCode);
});
process.on('disconnect', () => exit());

async function resize(columns: number, rows: number): Promise<void> {
  spawnSync('/usr/bin/stty', ['sane', 'cols', String(columns), 'rows', String(rows)], { stdio: 'inherit' });
  while (stdout.columns !== columns || stdout.rows !== rows) await once(stdout, 'resize');
}
