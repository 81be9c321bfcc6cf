// scripts/release publishes only a commit on which everything has passed. This is how it knows.
import { execFileSync } from 'node:child_process';
import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';

/** A run of `scripts/test --all`, to its end. */
export interface LastRun {
  /** The whole hash; the checkout had no changes. */
  readonly commit: string;
  /** YYYY-MM-DD. */
  readonly date: string;
  /** `N passed, N failed, N skipped`. */
  readonly result: string;
  /** In seconds, with the set-up. */
  readonly wall: number;
  /** Processor time of all processes, in seconds. */
  readonly cpu: number;
}

/** The commit of a checkout in which no file was changed or added, or null; also null if it is no git repository. */
export function cleanCommit(checkout: string): string | null {
  try {
    return git(checkout, 'status', '--porcelain') === '' ? git(checkout, 'rev-parse', '--verify', 'HEAD') : null;
  } catch {
    return null;
  }
}

/** Forgets the last run, before another one that may be interrupted. */
export function forgetLastRun(checkout: string): void {
  rmSync(recordOf(checkout), { force: true });
}

/** Records a run, unless the checkout has changed since: then the run was of no commit. */
export function recordLastRun(checkout: string, run: LastRun): void {
  if (cleanCommit(checkout) !== run.commit) return;
  mkdirSync(dirname(recordOf(checkout)), { recursive: true });
  writeFileSync(recordOf(checkout), `${JSON.stringify(run, null, 2)}\n`);
}

/** The last run in this checkout; null if there was none on a commit without changes. */
export function lastRun(checkout: string): LastRun | null {
  try {
    return JSON.parse(readFileSync(recordOf(checkout), 'utf8')) as LastRun;
  } catch {
    return null;
  }
}

function recordOf(checkout: string): string {
  return join(checkout, '.cache/test-all.json');
}

function git(checkout: string, ...args: readonly string[]): string {
  return execFileSync('git', ['-C', checkout, ...args], {
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'ignore'],
  }).trim();
}
