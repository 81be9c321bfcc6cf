import { execFile } from 'node:child_process';
import { constants } from 'node:fs';
import { access } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { scaleDeadline } from './deadlines.ts';

const run = promisify(execFile);
const checkout = join(import.meta.dirname, '../..');

const QEMU = '/usr/bin/qemu-aarch64-static';
const TOOLS = [QEMU, '/usr/sbin/debootstrap'];

/** Why no arm64 program can run here; null if one can. Tests pass it to `ctx.skip`, so that it is reported. */
export async function arm64SkipReason(): Promise<string | null> {
  if (process.getuid?.() !== 0) return 'fetching an arm64 Debian needs root';
  for (const tool of TOOLS) {
    if (await isMissing(tool)) return `${tool} is missing`;
  }
  try {
    await arm64Root();
    return null;
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  }
}

/** The folder of an arm64 Debian with its packages unpacked but not configured. Read-only. */
export async function arm64Root(): Promise<string> {
  try {
    return (
      await run(join(checkout, 'scripts/test-machine'), ['arm64'], { timeout: scaleDeadline(280_000) })
    ).stdout.trim();
  } catch (error) {
    const lastLine = (error as { stderr?: string }).stderr?.trim().split('\n').at(-1);
    throw new Error(`can't get an arm64 Debian: ${lastLine ?? error}`, { cause: error });
  }
}

/**
 * The command that runs one arm64 program from anywhere: it sees this machine's files, and its libraries in `root`.
 * Programs that it starts must be of this machine's architecture.
 * @param pageSize the kernel's page size that the program sees, in bytes: a Raspberry Pi 5 has 16 KiB
 */
export function arm64Command(root: string, program: string, pageSize: number): readonly [command: string, ...string[]] {
  return [QEMU, '-p', String(pageSize), '-L', root, program];
}

async function isMissing(file: string): Promise<boolean> {
  return access(file, constants.X_OK).then(
    () => false,
    () => true,
  );
}
