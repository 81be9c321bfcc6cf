import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { scaleDeadline } from '../support/deadlines.ts';

const run = promisify(execFile);

const CHECKOUT = join(import.meta.dirname, '../..');
/** The folder of all packages that tests install, each in one of its own. */
export const PACKAGES_FOLDER = join(CHECKOUT, '.cache/test-debs');
/** After any release; of this tree, as test/package builds it too. */
const LATER = '99.0.0';

/** A package as it is installed. */
export interface DebPackage {
  /** Its file on the machine that runs the tests. */
  readonly path: string;
  readonly version: string;
}

/** The package of this tree. Built once for the same sources, in some 20 s. */
export function buildPackage(): Promise<DebPackage> {
  return build();
}

/**
 * What an installed hub is updated from and to: from the newest release before this commit to this tree; before there is
 * one, from this tree to a later version of the very same.
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
