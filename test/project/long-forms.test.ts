import { existsSync, globSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { longForms, runLongForms } from '../../scripts/test.d/long.ts';
import { root, runCommand, temporaryFolder } from './checkout.ts';

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
  const known = longForms().map(({ name }) => name);
  expect(stderr).toBe(`scripts/test --long: found nothing; allowed are ${known.join(', ')}\n`);
});

test('a run of long forms is recorded with commit, date and result, and its tests are counted', async () => {
  using folder = temporaryFolder();
  const record = join(folder.path, 'long-runs.json');
  const before = { commit: '0123abc', date: '2026-01-01', result: '1 passed, 0 failed, 0 skipped' };
  writeFileSync(record, JSON.stringify({ earlier: before, good: before }));
  const forms = [
    ['good', 'true'],
    ['bad', 'exit 3'],
    ['tests', 'echo 7 passed, 1 failed, 2 skipped; exit 1'],
    ['cut off', 'echo 7 passed, 0 failed, 0 skipped; exit 1'],
  ].map(([name = '', command = '']) => ({ name, command, shows: '' }));
  expect(await runLongForms(forms, { record })).toEqual({ passed: 15, failed: 3, skipped: 2 });
  const { stdout: commit } = await runCommand('git', ['rev-parse', '--short', 'HEAD']);
  const written = (result: string) => ({
    commit: expect.stringMatching(new RegExp(`^${commit.trim() || 'unknown'}\\+?$`)),
    date: expect.stringMatching(/^\d{4}-\d\d-\d\d$/),
    result,
  });
  expect(JSON.parse(readFileSync(record, 'utf8'))).toEqual({
    earlier: before,
    good: written('1 passed, 0 failed, 0 skipped'),
    bad: written('0 passed, 1 failed, 0 skipped'),
    tests: written('7 passed, 1 failed, 2 skipped'),
    'cut off': written('7 passed, 1 failed, 0 skipped'),
  });
});

test('a long form that was stopped is not recorded', async () => {
  using folder = temporaryFolder();
  const record = join(folder.path, 'long-runs.json');
  writeFileSync(record, '{}');
  const stop = new AbortController();
  const running = runLongForms([{ name: 'slow', command: 'exec sleep 1000', shows: '' }], {
    record,
    stop: stop.signal,
  });
  stop.abort();
  expect(await running).toEqual({ passed: 0, failed: 1, skipped: 0 });
  expect(readFileSync(record, 'utf8')).toBe('{}');
});
