// The tests that the mutation tester runs, in the order in which it needs them: the first failure ends the run.
import { defineConfig } from 'vitest/config';
import { BaseSequencer, type TestSpecification } from 'vitest/node';
import config from '../../test/vitest.config.ts';

/**
 * Parts of the paths of the tests. Those of test/site, which also reach src/broker/grants, run in real time and would
 * take minutes for each mutant.
 */
const TESTS = process.env['LATCHKEY_MUTATE_TESTS'] ?? 'core/ broker/';
/** Parts of the paths of tests that are long, in virtual time, and of which others say the same in less. */
const LONG = ['broker/login-end', 'broker/usage-recorder'];

/** Parts of the paths, the fastest tests first. Most of test/broker run a whole broker in virtual time. */
const ORDER = ['core/', 'broker/grant-runner', 'broker/refresh-', 'broker/concurrency-limiter', 'broker/grants'];

function rank({ moduleId }: TestSpecification): number {
  const found = ORDER.findIndex((part) => moduleId.includes(`/test/${part}`));
  return found === -1 ? ORDER.length : found;
}

class FastestFirstSequencer extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    return files.toSorted((a, b) => rank(a) - rank(b) || (a.moduleId < b.moduleId ? -1 : 1));
  }
}

export default defineConfig({
  test: {
    ...config.test,
    include: TESTS.split(' ').map((part) => `**/${part}*.test.ts`),
    exclude: LONG.map((part) => `**/${part}*`),
    sequence: { sequencer: FastestFirstSequencer },
    // Without the watch of the event loop, which ends a process that a mutant keeps busy: the tester does that.
    setupFiles: ['support/equality.ts'],
  },
});
