// scripts/release publishes only a commit on which the whole suite has passed. This is how it knows.
import { execFileSync } from 'node:child_process';
import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';

/** The commit of a checkout in which no file was changed or added, or null; also null if it is no git repository. */
export function cleanCommit(checkout: string): string | null {
  try {
    return git(checkout, 'status', '--porcelain') === '' ? git(checkout, 'rev-parse', '--verify', 'HEAD') : null;
  } catch {
    return null;
  }
}

/** Forgets which commit has passed, before a complete run that may fail. */
export function forgetPassed(checkout: string): void {
  rmSync(stampOf(checkout), { force: true });
}

/**
 * Records that a complete run has passed: a line with the commit, and one with the counts.
 * @param commit as `cleanCommit` returned it before the run. Nothing is recorded if the checkout has changed since.
 * @param counts `N passed, N failed, N skipped`
 */
export function recordPassed(checkout: string, commit: string | null, counts: string): void {
  if (commit === null || cleanCommit(checkout) !== commit) return;
  mkdirSync(dirname(stampOf(checkout)), { recursive: true });
  writeFileSync(stampOf(checkout), `${commit}\n${counts}\n`);
}

function stampOf(checkout: string): string {
  return join(checkout, '.cache/test-passed');
}

function git(checkout: string, ...args: readonly string[]): string {
  return execFileSync('git', ['-C', checkout, ...args], {
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'ignore'],
  }).trim();
}
