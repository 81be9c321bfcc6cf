import { mkdtempSync, rmSync, statfsSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** The type of a file system in memory, as statfs(2) has it. */
const TMPFS_MAGIC = 0x01021994;

/** The folder for temporary files on a disk: a hub whose state is in memory warns about that. */
export function diskFolder(): string {
  return statfsSync(tmpdir()).type === TMPFS_MAGIC ? '/var/tmp' : tmpdir();
}

/** A private folder of this test that is deleted with it, or by a later test run. */
export function stateFolder(parent = diskFolder()): Disposable & { readonly path: string } {
  const path = mkdtempSync(join(parent, `latchkey-${process.pid}-state-`));
  return { path, [Symbol.dispose]: () => rmSync(path, { recursive: true, force: true }) };
}

/**
 * The same in memory, for tests that write a store often: a write that waits for no disk also takes less processor
 * time. It loses data only on a power cut, which these tests do not cause.
 */
export function memoryStateFolder(): Disposable & { readonly path: string } {
  return stateFolder(memoryFolder(ENOUGH_BYTES));
}

/** Where Linux keeps files in memory, as long as there is room: a container has 64 MiB by default. */
const SHARED_MEMORY = '/dev/shm';
const ENOUGH_BYTES = 32 * 2 ** 20;

/** The folder for files that need not survive a power cut. @param bytes for which it must have room; undefined if not */
export function memoryFolder(bytes: number): string | undefined {
  try {
    const { bavail, bsize } = statfsSync(SHARED_MEMORY);
    return bavail * bsize > bytes ? SHARED_MEMORY : undefined;
  } catch {
    return undefined;
  }
}
