import { defineConfig } from 'vitest/config';
import { LongFirst } from './long-first.ts';

/** Tests that hold the hub to a time of its own, such as being found within 2 s, or load all cores: nothing may run beside them. */
const ALONE = ['project/bench.test.ts', 'hub/discovery.test.ts', 'hub/test-mode.test.ts', 'machine/start.test.ts'];

const common = {
  root: import.meta.dirname,
  // For a test that hangs; no test is held to it.
  testTimeout: 60_000,
  hookTimeout: 60_000,
};

export default defineConfig({
  test: {
    root: import.meta.dirname,
    sequence: { sequencer: LongFirst },
    projects: [
      {
        test: {
          ...common,
          name: 'side by side',
          include: ['**/*.test.ts'],
          exclude: ['after/**', ...ALONE],
          // Most of the time is spent waiting, for tokens to age and polls to come due.
          maxWorkers: 6,
          sequence: { groupOrder: 0 },
        },
      },
      {
        test: { ...common, name: 'alone', include: ALONE, maxWorkers: 1, sequence: { groupOrder: 1 } },
      },
    ],
  },
});
