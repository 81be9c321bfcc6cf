import { existsSync, globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { root, runCommand } from './checkout.ts';

test('scripts/test --list names the programs and test files with a long form, and each command exists', async () => {
  const { status, stdout } = await runCommand(join(root, 'scripts/test'), ['--list']);
  expect(status).toBe(0);
  const commands = [...stdout.matchAll(/^ {4}((?:LATCHKEY_TEST_LONG=1 )?)(\.\/scripts\/\S+)(.*)$/gm)];
  expect(commands.map(([, , program]) => program)).toEqual(
    expect.arrayContaining(['./scripts/chaos', './scripts/fuzz']),
  );
  for (const [, , program = ''] of commands) expect(existsSync(join(root, program)), program).toBe(true);

  const filters = commands.flatMap(([, long, , args = '']) => (long === '' ? [] : args.trim().split(' ')));
  const files = globSync('test/**/*.test.ts', { cwd: root });
  for (const filter of filters)
    expect(
      files.filter((file) => file.includes(filter)),
      filter,
    ).not.toEqual([]);
  const long = files.filter((file) => /^import .*\/support\/long\.ts/m.test(readFileSync(join(root, file), 'utf8')));
  expect(long.filter((file) => !filters.some((filter) => file.includes(filter)))).toEqual([]);
});

test('scripts/test --long rejects an unknown long form and lists the known ones', async () => {
  const { status, stdout, stderr } = await runCommand(join(root, 'scripts/test'), ['--long', 'chaos', 'nothing']);
  expect({ status, stdout }).toEqual({ status: 2, stdout: '0 passed, 1 failed, 0 skipped\n' });
  expect(stderr).toMatch(/^scripts\/test --long: found nothing; allowed are chaos, .*, tests\n$/);
});
