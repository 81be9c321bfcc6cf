import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import type { Subject } from './suite.ts';

const root = join(import.meta.dirname, '../..');

/**
 * Another revision of this project, built: it is unpacked below `.cache/bench/`, and stays there for the next time. It
 * is measured by the suites as they are here.
 * @param fail ends with one line that says what is wrong
 */
export function checkoutOf(revision: string, fail: (line: string) => never): Subject {
  const named = spawnSync('git', ['rev-parse', '--verify', '--quiet', `${revision}^{commit}`], { cwd: root });
  if (named.status !== 0)
    fail(`scripts/bench: --against: found ${revision}; allowed is a revision that git knows here`);
  const commit = named.stdout.toString().trim();
  const folder = join(root, '.cache/bench/revisions', commit);
  if (!existsSync(join(folder, 'scripts/setup'))) {
    rmSync(folder, { recursive: true, force: true });
    mkdirSync(folder, { recursive: true });
    const unpack = 'git archive "$1" | tar -x -C "$2"';
    const unpacked = spawnSync('bash', ['-o', 'pipefail', '-c', unpack, 'bash', commit, folder], { cwd: root });
    if (unpacked.status !== 0) fail(`scripts/bench: ${revision} could not be unpacked: ${unpacked.stderr}`);
  }
  const built = spawnSync(join(folder, 'scripts/setup'), { cwd: folder, stdio: ['ignore', 2, 2] });
  if (built.status !== 0) fail(`scripts/bench: ${revision} could not be built; see above`);
  return { name: `latchkey at ${commit.slice(0, 7)}`, root: folder };
}
