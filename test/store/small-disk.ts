import { execFileSync } from 'node:child_process';
import type { TestContext } from 'vitest';
import { stateFolder } from '../support/state-folder.ts';

/**
 * Mounts a small file system on a private folder until it is disposed of. Skips the test if mounting is not permitted.
 * @param size as mount(8) takes it, such as `512k`
 */
export function mountSmallDisk(ctx: TestContext, size: string): Disposable & { readonly path: string } {
  if (process.getuid?.() !== 0) ctx.skip('mounting a small disk needs root');
  const folder = stateFolder();
  const { path } = folder;
  try {
    execFileSync('mount', ['-t', 'tmpfs', '-o', `size=${size},mode=700`, 'tmpfs', path], { stdio: 'pipe' });
  } catch {
    folder[Symbol.dispose]();
    ctx.skip('no tmpfs can be mounted here');
  }
  return {
    path,
    [Symbol.dispose]() {
      execFileSync('umount', ['-l', path]);
      folder[Symbol.dispose]();
    },
  };
}
