// Two builds of one tree have the same bytes, in two folders with different names and at different times.
import { execFile } from 'node:child_process';
import { mkdir, readdir, readFile } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { expect, it } from 'vitest';
import { stateFolder } from '../../support/state-folder.ts';
import { buildPackage } from '../machine/packages.ts';

const run = promisify(execFile);
const ROOT = join(import.meta.dirname, '../../..');
const TREE = ['src', 'systemd', 'docs', 'scripts', 'node_modules', 'README.md', 'CHANGELOG.md', 'LICENSE', '.npmrc'];
const TREE_FILES = ['package.json', 'package-lock.json', 'tsconfig.json'];

it('a package is identical wherever it is built', async () => {
  using folder = stateFolder();
  const own = (await buildPackage()).path;
  const bytes = await readFile(own);
  const elsewhere = join(folder.path, 'a longer name of a folder');
  await mkdir(join(elsewhere, '.cache'), { recursive: true });
  // Hard links, because the tree has some hundred MB.
  for (const part of [...TREE, ...TREE_FILES]) await run('cp', ['-al', join(ROOT, part), join(elsewhere, part)]);
  for (const part of await readdir(join(ROOT, '.cache'))) {
    if (/^(node-|packages)/.test(part))
      await run('cp', ['-al', join(ROOT, '.cache', part), join(elsewhere, '.cache', part)]);
  }
  const output = join(folder.path, 'there');
  await build(elsewhere, output, { commitTime: arTime(bytes) });
  expect((await readdir(output)).sort()).toEqual((await readdir(dirname(own))).sort());
  expect((await readFile(join(output, basename(own)))).equals(bytes)).toBe(true);
});

/** The timestamp of the first member of a package: the time of the commit, in seconds since 1970. */
function arTime(bytes: Buffer): string {
  return bytes.toString('ascii', 24, 36).trim();
}

/** @param commitTime the time of the commit, for a tree without one */
async function build(tree: string, output: string, { commitTime }: { readonly commitTime: string }): Promise<void> {
  const script = 'umask 077; exec "$0" --level none --arch "$(dpkg --print-architecture)" --output "$1"';
  const env = { ...process.env, SOURCE_DATE_EPOCH: commitTime, TZ: 'Pacific/Auckland' };
  await run('bash', ['-c', script, join(tree, 'scripts/build-deb'), output], { env, maxBuffer: 2 ** 24 });
}
