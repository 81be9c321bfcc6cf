import { globSync, readdirSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { basename, join } from 'node:path';
import { expect, test } from 'vitest';
import { sectionEntries } from '../../src/configuration/schema.ts';
import { root, runCommand, temporaryFolder } from './checkout.ts';

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

test.each([
  ['build-deb', ['--version', 'latest'], '--version latest: allowed is 1.2.3 or 1.2.3-rc.1'],
  ['build-deb', ['--level', '10'], '--level 10: allowed is 0 to 9, or none'],
  ['build-emulator-package', ['--output'], '--output needs a value, or is unknown'],
  ['build-emulator-package', ['--version', 'latest'], '--version latest: allowed is 1.2.3 or 1.2.3-rc.1'],
  ['build-emulator-package', ['--unknown', 'x'], '--unknown: unknown option'],
  ['build-image', ['--arch', 'i386'], '--arch i386: allowed is amd64 or arm64'],
  ['build-image', ['--version', 'new'], '--version new: allowed is 1.2.3 or 1.2.3-rc.1'],
  ['build-image', ['--level', 'none'], '--level none: allowed is 1 to 9'],
  ['build-image', ['--packages', '/missing'], "--packages /missing: the file can't be read"],
  ['build-home-assistant', ['--version', '1.2'], '--version 1.2: allowed is '],
  ['build-home-assistant', ['--image', 'latchkey'], '--image latchkey: allowed is '],
  ['build-home-assistant', ['--image', 'registry.example/maker/latchkey:1.2.3'], 'no tag'],
  ['build-home-assistant', ['--image', 'registry.example/latchkey'], 'two parts without dots at the end'],
  ['release', [], 'VERSION is missing'],
])('scripts/%s %j is wrong usage', async (name, args, message) => {
  const { status, stdout, stderr } = await runCommand(join(root, 'scripts', name), args);
  expect({ status, stdout }).toEqual({ status: 2, stdout: '' });
  expect(stderr).toMatch(new RegExp(`^latchkey: .*\\nusage: scripts/${name} `));
  expect(stderr).toContain(message);
});

test.each([
  ['LATCHKEY_MAINTAINER', 'Example Hubs', 'Example Hubs <hubs@maker.example>'],
  ['LATCHKEY_MAINTAINER', 'hubs@maker.example', 'Example Hubs <hubs@maker.example>'],
  ['LATCHKEY_HOMEPAGE', 'hubs maker', 'https://hubs.maker.example'],
  ['LATCHKEY_BUGS', 'hubs.maker.example', 'https://hubs.maker.example'],
  ['LATCHKEY_REPOSITORY', 'https://', 'https://hubs.maker.example'],
])('no script builds anything with %s="%s"', async (name, value, example) => {
  for (const script of scripts) {
    const args = { 'build-apt': ['--key', '/dev/null'], release: ['1.2.3'] }[script] ?? [];
    const env = { ...process.env, [name]: value };
    const { status, stdout, stderr } = await runCommand(join(root, 'scripts', script), args, { env });
    expect({ status, stdout }, script).toEqual({ status: 1, stdout: '' });
    expect(stderr, script).toMatch(new RegExp(`^latchkey: ${name} is '${value}': .*${example}`));
  }
});

test('two builds at once write to temporary folders of their own, which Ctrl-C removes', async () => {
  using folder = temporaryFolder();
  const output = join(folder.path, 'build');
  const program = 'source scripts/setup; open_output "$0"; echo "$part"; echo x >"$part/file"; kill -INT $$; sleep 60';
  const build = () => runCommand('bash', ['-c', program, output]);
  const [one, other] = await Promise.all([build(), build()]);
  expect(one.stdout).toMatch(new RegExp(`^${output}/`));
  expect(other.stdout).toMatch(new RegExp(`^${output}/`));
  expect(one.stdout).not.toBe(other.stdout);
  expect(readdirSync(output)).toEqual([]);
});

test('the example configuration of the packages contains every key', () => {
  const example = readFileSync(join(root, 'scripts/deb.d/latchkey.example.toml'), 'utf8');
  const sections = ['hub', 'lan', 'portals', 'pairing', 'connections', 'appliances', 'notify', 'metrics', 'local'];
  const keys = [
    ...sections.flatMap((section) => Object.keys(sectionEntries(section))),
    ...Object.keys(sectionEntries('portals', 'oauth2')),
  ];
  const missing = keys.filter((key) => !new RegExp(`^#${key} = `, 'm').test(example));
  // Under systemd, the unit sets these paths.
  expect(missing).toEqual(['state_dir', 'control_socket']);
});

test('the packages contain each part of undici that the hub imports', () => {
  const imports = globSync('src/**/*.ts', { cwd: root }).flatMap((path) => {
    const [, names = ''] = /^import \{ (.*) \} from 'undici';$/m.exec(readFileSync(join(root, path), 'utf8')) ?? [];
    return names.split(', ').filter((name) => name !== '' && !name.startsWith('type '));
  });
  const parts = createRequire(import.meta.url)('../../scripts/deb.d/undici.cjs');
  expect([...new Set(imports)].toSorted()).toEqual(Object.keys(parts).toSorted());
});
