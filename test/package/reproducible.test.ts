// Two builds of one tree, in two folders of different names, at different times, are the same bytes.
import { execFile } from 'node:child_process';
import { mkdir, readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect, it } from 'vitest';
import { stateFolder } from '../support/state-folder.ts';

const run = promisify(execFile);
const ROOT = join(import.meta.dirname, '../..');
const TREE = ['src', 'systemd', 'docs', 'scripts', 'node_modules', 'README.md', 'CHANGELOG.md', '.npmrc'];
const TREE_FILES = ['package.json', 'package-lock.json', 'tsconfig.json'];

it('a package is the same wherever it is built', async () => {
  using folder = stateFolder();
  const own = await build(ROOT, join(folder.path, 'here'), '022');
  const elsewhere = join(folder.path, 'a longer name of a folder');
  await mkdir(join(elsewhere, '.cache'), { recursive: true });
  // Hard links: what is copied is some hundred MB.
  for (const part of [...TREE, ...TREE_FILES]) await run('cp', ['-al', join(ROOT, part), join(elsewhere, part)]);
  for (const part of await readdir(join(ROOT, '.cache'))) {
    if (/^(node-|packages)/.test(part))
      await run('cp', ['-al', join(ROOT, '.cache', part), join(elsewhere, '.cache', part)]);
  }
  const other = await build(elsewhere, join(folder.path, 'there'), '077');
  expect(other.names).toEqual(own.names);
  expect(other.bytes.equals(own.bytes)).toBe(true);
});

async function build(tree: string, output: string, umask: string) {
  const script = `umask ${umask}; exec "$0" --level none --arch "$(dpkg --print-architecture)" --output "$1"`;
  // What a commit would say, for a tree without one.
  const env = { ...process.env, SOURCE_DATE_EPOCH: '1767225600', TZ: umask === '022' ? 'UTC' : 'Pacific/Auckland' };
  await run('bash', ['-c', script, join(tree, 'scripts/build-deb'), output], { env, maxBuffer: 2 ** 24 });
  const names = (await readdir(output)).sort();
  const debian = names.find((name) => name.endsWith('.deb')) ?? '';
  return { names, bytes: await readFile(join(output, debian)) };
}
