import { execFile } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { scaleDeadline } from '../support/deadlines.ts';

/** The checkout under test. */
export const root = join(import.meta.dirname, '../..');

/** A temporary folder with a space in its name, removed on disposal or by a later test run. @param inside its parent */
export function temporaryFolder(inside = tmpdir()): Disposable & { readonly path: string } {
  const path = mkdtempSync(join(inside, `latchkey-${process.pid} project-`));
  return { path, [Symbol.dispose]: () => rmSync(path, { recursive: true, force: true }) };
}

/** How a command ended: its exit status, null if a signal or the timeout ended it, and its output. */
export interface CommandResult {
  readonly status: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

/**
 * Runs a command to its end, without input.
 * @param timeout milliseconds after which it is killed
 */
export function runCommand(
  command: string,
  args: readonly string[],
  {
    cwd = root,
    env = process.env,
    timeout = scaleDeadline(60_000),
  }: { cwd?: string; env?: NodeJS.ProcessEnv; timeout?: number } = {},
): Promise<CommandResult> {
  return new Promise((resolve) => {
    const options = { cwd, env, timeout, killSignal: 'SIGKILL', maxBuffer: 64 << 20 } as const;
    const child = execFile(command, args, options, (_error, stdout, stderr) =>
      resolve({ status: child.exitCode, stdout, stderr }),
    );
    child.stdin?.end();
  });
}
