import { globSync } from 'node:fs';
import { basename, join } from 'node:path';
import { expect, test } from 'vitest';
import { root, runCommand } from './checkout.ts';

const scripts = ['release', ...globSync('scripts/build-*', { cwd: root }).map((path) => basename(path))];

test.each(scripts)('scripts/%s --help says what it builds and with which options, and builds nothing', async (name) => {
  for (const args of [['--help'], ['-h'], ['--output', '/nonexistent/folder', '--help']]) {
    const { status, stdout, stderr } = await runCommand(join(root, 'scripts', name), args);
    expect({ status, stderr }).toEqual({ status: 0, stderr: '' });
    expect(stdout).toMatch(/^Builds|^Writes/);
    expect(stdout).toMatch(new RegExp(`scripts/${name} [^\n]*\\[--output DIR\\]`));
    expect(stdout).not.toMatch(/^#|set -euo/m);
  }
});
