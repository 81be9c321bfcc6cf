import { existsSync, globSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { root, runCommand } from './checkout.ts';

function read(file: string): string {
  return readFileSync(join(root, file), 'utf8');
}

function manifest(file: string): Record<string, unknown> {
  return JSON.parse(read(file)) as Record<string, unknown>;
}

/** Each has packages of its own. Only those of the first are installed for everybody who develops. */
const FOLDERS = ['.', 'scripts/runtime', 'scripts/exam.d/clients'];

describe.each(FOLDERS)('the packages of %s', (folder) => {
  test('the packages are locked by hash, and the lock file names no registry', () => {
    const all = Object.entries(packages(`${folder}/package-lock.json`));
    expect(all.length).toBeGreaterThan(2);
    for (const [path, locked] of all) {
      expect(locked.resolved, path).toBeUndefined();
      if (path !== '') expect(locked.integrity, path).toMatch(/^sha512-/);
    }
    expect(read(`${folder}/package-lock.json`)).not.toContain('"resolved"');
  });

  test('the packages are required in exact versions', () => {
    const { dependencies, devDependencies, optionalDependencies } = manifest(`${folder}/package.json`);
    const versions = Object.entries({
      ...stringRecord(dependencies),
      ...stringRecord(devDependencies),
      ...stringRecord(optionalDependencies),
    });
    expect(versions).not.toEqual([]);
    for (const [name, version] of versions) expect(version, name).toMatch(/^\d+\.\d+\.\d+(-[\w.]+)?$/);
  });
});

test('the installed packages are those of the lock file', () => {
  const locked = packages('package-lock.json');
  const { dependencies, devDependencies } = manifest('package.json');
  expect(locked['']).toMatchObject({ dependencies, devDependencies });
  for (const [path, { integrity }] of Object.entries(packages('node_modules/.package-lock.json'))) {
    expect(integrity, path).toBe(locked[path]?.integrity);
  }
});

test('the checkout has no other lock file than those that are checked', () => {
  const locks = globSync('**/package-lock.json', { cwd: root, exclude: ['**/node_modules', '**/.cache'] });
  expect(locks.sort()).toEqual(FOLDERS.map((folder) => join(folder, 'package-lock.json')).sort());
});

function packages(file: string): Record<string, Locked> {
  return manifest(file)['packages'] as Record<string, Locked>;
}

interface Locked {
  readonly resolved?: string;
  readonly integrity?: string;
}

function stringRecord(dependencies: unknown): Record<string, string> {
  return (dependencies ?? {}) as Record<string, string>;
}

test('every script is executable and starts with bash in strict mode', () => {
  const scripts = globSync(['scripts/*', '.ci/*'], { cwd: root, exclude: ['**/*.*', '**/runtime'] });
  expect(scripts).toEqual(expect.arrayContaining(['scripts/demo', 'scripts/test', 'scripts/latchkey', '.ci/run']));
  for (const script of scripts) {
    expect(statSync(join(root, script)).mode & 0o111, script).toBe(0o111);
    expect(read(script), script).toMatch(/^#!\/usr\/bin\/env bash\n/);
    expect(read(script), script).toContain('\nset -euo pipefail\n');
  }
});

test('the version in package.json is the newest in CHANGELOG.md, or none was released yet', () => {
  const [newest] = [...read('CHANGELOG.md').matchAll(/^## \[(.*)\]/gm)].map(([, section]) => section);
  expect([manifest('package.json')['version'], 'Unreleased']).toContain(newest);
});

test('git ignores the files that the commands of README.md create', async (ctx) => {
  if (!existsSync(join(root, '.git'))) ctx.skip('this checkout is no git repository');
  const shell = [...read('README.md').matchAll(/^```sh\n(.*?)^```/gms)].map(([, block]) => block).join('');
  const redirected = [...shell.matchAll(/ > ([\w.-]+)$/gm)].map(([, file = '']) => file);
  expect(redirected).toContain('latchkey-ca.pem');
  const made = [...redirected, 'latchkey-wallbox.svg', 'build/latchkey_0.1.0_arm64.deb'];
  expect((await runCommand('git', ['check-ignore', ...made])).stdout.trim().split('\n')).toEqual(made);
});
