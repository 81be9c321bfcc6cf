import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { scaleDeadline } from '../deadlines.ts';
import { POSTGRES_ENV, postgresProgram } from './cluster.ts';

const run = promisify(execFile);

/**
 * Runs statements with psql(1), each in its own transaction.
 * @param database a `postgresql:` URL or a connection string
 * @returns the rows, one per line, with `|` between the columns
 * @throws Error with the server's message if a statement fails, or if there is no response in time
 */
export async function psql(database: string, statements: string): Promise<string> {
  const format = ['--no-psqlrc', '--no-align', '--tuples-only', '--quiet', '--set', 'ON_ERROR_STOP=1'];
  const running = run(postgresProgram('psql'), [...format, '--dbname', database], {
    ...{ env: POSTGRES_ENV, timeout: scaleDeadline(15_000), killSignal: 'SIGKILL' },
  });
  // It may end before it has read everything.
  running.child.stdin?.on('error', () => undefined).end(statements);
  try {
    return (await running).stdout.trimEnd();
  } catch (error) {
    const stderr = error instanceof Error && 'stderr' in error ? String(error.stderr).trim() : '';
    // The message of the cause contains the password.
    throw new Error(`psql: ${stderr || 'no response in time'}`);
  }
}
