// Runs commands of the built program one after another, each with its own arguments and environment. A NUL ends the
// output of each command on both standard streams; the exit status is sent to the parent process.
import { EventEmitter } from 'node:events';
import { dirname, join } from 'node:path';
import { MAIN } from '../support/program.ts';

/** The message that requests a command. */
export interface SharedProcessCommand {
  readonly args: readonly string[];
  readonly env: NodeJS.ProcessEnv;
}

// Each command adds its own listeners for output errors and exceptions.
EventEmitter.defaultMaxListeners = 0;
const { run } = (await import(join(dirname(MAIN), 'cli/program.js'))) as typeof import('../../src/cli/program.ts');

process.on('message', async ({ args, env }: SharedProcessCommand) => {
  for (const name of Object.keys(process.env)) delete process.env[name];
  Object.assign(process.env, env);
  process.exitCode = 0;
  await run(args);
  process.stdout.write('\0');
  process.stderr.write('\0');
  process.send?.(process.exitCode);
});
