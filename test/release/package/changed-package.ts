import { execFile } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';

const run = promisify(execFile);

/**
 * Builds a package from another one's files after a change.
 * @param path the new package's file
 * @param change changes the unpacked tree, with the control files in `DEBIAN/`
 */
export async function buildChangedPackage(
  from: string,
  path: string,
  change: (tree: string) => Promise<void>,
): Promise<void> {
  const tree = await mkdtemp(`${path}-`);
  await run('dpkg-deb', ['-R', from, tree]);
  await change(tree);
  await run('dpkg-deb', ['--root-owner-group', '-Znone', '--build', tree, path]);
  await rm(tree, { recursive: true });
}

/** Makes an unpacked package one that knows no schema of the store, as if it were older than all. */
export async function forgetSchemas(tree: string): Promise<void> {
  await run('sed', ['-i', 's/^NEWEST_SCHEMA=.*/NEWEST_SCHEMA=0/', join(tree, 'DEBIAN/preinst')]);
}
