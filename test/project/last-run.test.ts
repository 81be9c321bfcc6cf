import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { cleanCommit, forgetLastRun, lastRun, recordLastRun } from '../../scripts/test.d/last-run.ts';
import { describeLastRun } from '../../scripts/test.d/long.ts';
import { runCommand, temporaryFolder } from './checkout.ts';

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

const runOf = (hash: string) => ({
  commit: hash,
  date: '2026-01-31',
  result: '3 passed, 0 failed, 1 skipped',
  wall: 600,
  cpu: 1230,
});

test('a run of everything is recorded with its commit and its times, unless the checkout has changed', async () => {
  using folder = temporaryFolder();
  const checkout = join(folder.path, 'checkout');
  mkdirSync(checkout);
  expect(cleanCommit(checkout)).toBeNull();
  expect(describeLastRun(checkout)).toContain('never run to its end in this checkout');
  writeFileSync(join(checkout, '.gitignore'), '.cache/\n');
  await commit(checkout);
  const first = cleanCommit(checkout) ?? '';
  expect(first).toMatch(/^[0-9a-f]{40}$/);
  recordLastRun(checkout, runOf(first));
  expect(lastRun(checkout)).toEqual(runOf(first));
  expect(describeLastRun(checkout)).toContain(
    `2026-01-31, on ${first.slice(0, 7)}: 3 passed, 0 failed, 1 skipped; 10.0 min, 20.5 min of processor time`,
  );
  forgetLastRun(checkout);
  expect(lastRun(checkout)).toBeNull();

  writeFileSync(join(checkout, 'new'), '');
  expect(cleanCommit(checkout)).toBeNull();
  recordLastRun(checkout, runOf(first));
  expect(lastRun(checkout)).toBeNull();
  await commit(checkout);
  recordLastRun(checkout, runOf(first));
  expect(lastRun(checkout)).toBeNull();
  rmSync(join(checkout, 'new'));
  expect(cleanCommit(checkout)).toBeNull();
});
