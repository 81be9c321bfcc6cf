// Runs one command of the built program after another, each with its arguments and environment as a process of its own
// would. On both standard streams a NUL follows what it wrote, and its exit status is sent back.
import { EventEmitter } from 'node:events';
import { dirname, join } from 'node:path';
import { MAIN } from '../support/program.ts';

/** What is sent to it. */
export interface SharedProcessCommand {
  readonly args: readonly string[];
  readonly env: NodeJS.ProcessEnv;
}

// Each command sets anew what it does when its output breaks, or something throws.
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
