import { cpSync, existsSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { scaleDeadline } from '../support/deadlines.ts';
import { IS_LONG_FORM } from '../support/long.ts';
import { root, runCommand, temporaryFolder } from './checkout.ts';
import {
  machinePath,
  machineProgram,
  olderNode,
  quickNpm,
  shellEnvironment as shell,
  writeProgram,
} from './quick-npm.ts';

const { version } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as { version: string };

test('a fresh clone sets itself up on a machine with an older Node.js', async (ctx) => {
  if (!existsSync(join(root, '.git'))) ctx.skip('this checkout is no git repository to clone');
  using folder = temporaryFolder(join(root, '.cache'));
  const clone = join(folder.path, 'a clone');
  expect(await runCommand('git', ['clone', '--quiet', root, clone])).toMatchObject({ status: 0 });
  const bin = olderNode(folder.path);
  if (!IS_LONG_FORM) quickNpm(bin);
  const env = { ...shell, PATH: [bin, ...machinePath].join(':'), CI: 'true' };
  const latchkey = (cwd: string) =>
    runCommand(join(clone, 'scripts/latchkey'), ['--version'], { cwd, env, timeout: scaleDeadline(120_000) });

  const two = await Promise.all([latchkey(clone), latchkey(tmpdir())]);
  const output = two.map(({ stderr }) => stderr).join('');
  for (const { status, stdout } of two)
    expect({ status, stdout }, output).toEqual({ status: 0, stdout: `${version}\n` });
  for (const once of [/downloading Node\.js 24/g, /installing packages/g, /building/g])
    expect(output.match(once)).toHaveLength(1);

  expect(await latchkey(tmpdir())).toEqual({ status: 0, stdout: `${version}\n`, stderr: '' });

  const tests = await runCommand(join(clone, 'scripts/test'), ['core/secret'], {
    env,
    timeout: scaleDeadline(120_000),
  });
  expect(tests.stdout, tests.stderr).toMatch(
    /\n== types of the tests and scripts\n.*\nChecks skipped because of the FILTER .*\n\d+ passed, 0 failed, 0 skipped\n$/s,
  );
  expect(tests.stdout).not.toContain('== lint');

  // The compiler has already run once; a second run would only take time.
  const built = join(folder.path, 'built');
  cpSync(join(clone, 'dist'), built, { recursive: true });
  rmSync(join(clone, 'node_modules/.bin/tsc'));
  writeProgram(join(clone, 'node_modules/.bin/tsc'), `cp -R '${built}' dist`);
  writeFileSync(join(clone, 'src/main.ts'), '\n// changed\n', { flag: 'a' });
  expect(await latchkey(clone)).toEqual({ status: 0, stdout: `${version}\n`, stderr: 'latchkey: building\n' });
  expect((await runCommand('git', ['status', '--porcelain'], { cwd: clone })).stdout).toBe(' M src/main.ts\n');
});

test.each([
  ['npm is missing', null, 'npm is missing: install'],
  ['the registry is out of reach', 'ENOTFOUND', 'unreachable. Check the network'],
  ['the disk is full', 'ENOSPC', 'the disk is full. Free some space'],
  ["npm's cache belongs to somebody else", 'EACCES', 'no permission to write a file. Run this as the owner'],
  ['there is no Node 24 for the machine', 'uname', 'no download for Linux armv7l: install Node.js 24'],
])('if %s, the last line of the setup says so and what to do', async (_what, code, line) => {
  using folder = temporaryFolder();
  const bin = olderNode(folder.path);
  for (const name of [
    'bash',
    'env',
    'find',
    'cksum',
    'sort',
    'dirname',
    'readlink',
    'mkdir',
    'rm',
    'uname',
    'ps',
    'ln',
  ]) {
    const path = machineProgram(name);
    if (path !== undefined && !(name === 'uname' && code === 'uname')) symlinkSync(path, join(bin, name));
  }
  if (code === 'uname') writeProgram(join(bin, 'uname'), 'echo Linux armv7l');
  else if (code !== null) writeProgram(join(bin, 'npm'), `echo "npm error code ${code}"; exit 1`);
  cpSync(join(root, 'scripts'), join(folder.path, 'clone/scripts'), {
    recursive: true,
    filter: (path) => !path.includes('node_modules'),
  });

  const latchkey = join(folder.path, 'clone/scripts/latchkey');
  const { status, stdout, stderr } = await runCommand(latchkey, ['--version'], { env: { ...shell, PATH: bin } });
  expect({ status, stdout }).toEqual({ status: 1, stdout: '' });
  expect(stderr.trim().split('\n').at(-1)).toContain(line);
  expect(
    stderr
      .trim()
      .split('\n')
      .filter((line) => !line.startsWith('latchkey: ')),
  ).toEqual([]);

  const tests = await runCommand(join(folder.path, 'clone/scripts/test'), [], { env: { ...shell, PATH: bin } });
  expect(tests).toMatchObject({ status: 1, stdout: '0 passed, 1 failed, 0 skipped\n' });
});
