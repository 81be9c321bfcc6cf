import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { cleanCommit, forgetPassed, recordPassed } from '../../scripts/test.d/passed.ts';
import { runCommand, temporaryFolder } from './checkout.ts';

const COUNTS = '3 passed, 0 failed, 1 skipped';

async function commit(folder: string): Promise<void> {
  const author = ['-c', 'user.name=Test', '-c', 'user.email=test@example.invalid'];
  for (const args of [
    ['init', '--quiet'],
    ['add', '--all'],
    [...author, 'commit', '--quiet', '--message', 'Change'],
  ]) {
    expect(await runCommand('git', args, { cwd: folder })).toMatchObject({ status: 0 });
  }
}

test('a complete test run records the commit that has passed, unless the checkout has changed', async () => {
  using folder = temporaryFolder();
  const checkout = join(folder.path, 'checkout');
  const stamp = join(checkout, '.cache/test-passed');
  mkdirSync(checkout);
  expect(cleanCommit(checkout)).toBeNull();
  writeFileSync(join(checkout, '.gitignore'), '.cache/\n');
  await commit(checkout);
  const first = cleanCommit(checkout);
  expect(first).toMatch(/^[0-9a-f]{40}$/);
  recordPassed(checkout, first, COUNTS);
  expect(readFileSync(stamp, 'utf8')).toBe(`${first}\n${COUNTS}\n`);
  forgetPassed(checkout);
  expect(existsSync(stamp)).toBe(false);

  writeFileSync(join(checkout, 'new'), '');
  expect(cleanCommit(checkout)).toBeNull();
  for (const before of [first, null]) recordPassed(checkout, before, COUNTS);
  expect(existsSync(stamp)).toBe(false);
  await commit(checkout);
  recordPassed(checkout, first, COUNTS);
  expect(existsSync(stamp)).toBe(false);
  rmSync(join(checkout, 'new'));
  recordPassed(checkout, cleanCommit(checkout), COUNTS);
  expect(existsSync(stamp)).toBe(false);
});
