import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { scaleDeadline } from '../../support/deadlines.ts';

const run = promisify(execFile);

const CHECKOUT = join(import.meta.dirname, '../../..');
/** The folder of all packages that tests install. Each is in its own subfolder. */
export const PACKAGES_FOLDER = join(CHECKOUT, '.cache/test-debs');
/** Later than any release. */
export const LATER = '99.0.0';

/** A package to install. */
export interface DebPackage {
  /** Its file on the machine that runs the tests. */
  readonly path: string;
  readonly version: string;
}

/** The package of this tree with package.json's version or the given one. It is built once for the same sources. */
export function buildPackage(version?: string): Promise<DebPackage> {
  return version === undefined ? build() : build(version);
}

/**
 * The two packages of an update: from the newest release before this commit to this tree. Before the first release:
 * from this tree to a later version of the same tree.
 */
export async function updatePackages(): Promise<{ readonly from: DebPackage; readonly to: DebPackage }> {
  const [released] = await build('--previous').then(
    (found) => [found],
    (error: unknown) => {
      if (error instanceof NoRelease) return [];
      throw error;
    },
  );
  if (released === undefined) return { from: await build(), to: await build(LATER) };
  const { version } = JSON.parse(readFileSync(join(CHECKOUT, 'package.json'), 'utf8')) as { version: string };
  // Until the next release has its number.
  return { from: released, to: await (released.version === version ? build(following(version)) : build()) };
}

/** The version after this one: 0.2.1 after 0.2.0. */
function following(version: string): string {
  const [major, minor, patch = 0] = version.split('.').map(Number.parseFloat);
  return `${major}.${minor}.${patch + 1}`;
}

class NoRelease extends Error {}

async function build(...options: string[]): Promise<DebPackage> {
  const script = join(CHECKOUT, 'scripts/test-deb');
  const path = (await run(script, options, { timeout: scaleDeadline(120_000), maxBuffer: 2 ** 24 })).stdout.trim();
  if (path === '') throw new NoRelease();
  const { stdout } = await run('dpkg-deb', ['--field', path, 'Version']);
  return { path, version: stdout.trim() };
}

/**
 * Builds a package of another version from another one's files after a change.
 * @param path the new package's file
 * @param change changes the unpacked tree, with the control files in `DEBIAN/`
 */
export async function buildChangedPackage(
  from: string,
  path: string,
  version: string,
  change: (tree: string) => Promise<unknown>,
): Promise<void> {
  const tree = await mkdtemp(`${path}-`);
  await run('dpkg-deb', ['-R', from, tree]);
  await run('sed', ['-i', `s/^Version: .*/Version: ${version}/`, join(tree, 'DEBIAN/control')]);
  await run('sed', ['-i', `s/"version": .*/"version": "${version}",/`, join(tree, 'usr/lib/latchkey/package.json')]);
  await change(tree);
  await run('dpkg-deb', ['--root-owner-group', '-Znone', '--build', tree, path]);
  await rm(tree, { recursive: true });
}

/** Makes an unpacked package one that knows no schema of the store, as if it were older than all. */
export async function forgetSchemas(tree: string): Promise<void> {
  await run('sed', ['-i', 's/^NEWEST_SCHEMA=.*/NEWEST_SCHEMA=0/', join(tree, 'DEBIAN/preinst')]);
}
