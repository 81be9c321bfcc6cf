import { execFileSync } from 'node:child_process';
import type { TestContext } from 'vitest';
import { stateFolder } from '../support/state-folder.ts';

/**
 * A folder that is a disk of its own, closed to others, until it is disposed of. Skips the test where nothing can be mounted.
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
