import { execFile } from 'node:child_process';
import { promisify } from 'node:util';

const run = promisify(execFile);

/** Bytes of a program's output. */
const MOST_OUTPUT = 4 << 20;

/** What a program of the machine wrote to its standard output; null where it is not there, failed, or took too long. */
export async function outputOf(
  program: string,
  args: readonly string[],
  signal: AbortSignal,
  env: NodeJS.ProcessEnv,
): Promise<string | null> {
  const options = { signal, timeout: 4000, killSignal: 'SIGKILL', maxBuffer: MOST_OUTPUT, env } as const;
  return run(program, args, options).then(
    ({ stdout }) => stdout,
    () => null,
  );
}
