import { availableParallelism } from 'node:os';
import { join } from 'node:path';
import { defineConfig } from 'vitest/config';
import { LongestFirstSequencer } from './longest-first-sequencer.ts';
import { scaleDeadline } from './support/deadlines.ts';
import { SHARED_CACHE } from './support/program.ts';

// For the workers and all programs that tests start with this environment: what was compiled, and stripped of types, before.
process.env['NODE_COMPILE_CACHE'] ??= join(SHARED_CACHE, 'node');

// test/release is the second tier.
const secondTier = process.env['LATCHKEY_TEST_ALL'] === undefined ? ['release/**'] : [];

export default defineConfig({
  test: {
    root: import.meta.dirname,
    include: ['**/*.test.ts'],
    exclude: ['after/**', ...secondTier],
    sequence: { sequencer: LongestFirstSequencer },
    // Two thirds of a file's time are spent waiting, for programs, tokens to age and polls to come due.
    maxWorkers: 3 * availableParallelism() + 1,
    // Files share processes: one of its own, and all that is imported once more, cost a file half a second of the processor's
    // time. So no test changes its process for good: environment, directory, signals, globals.
    isolate: false,
    // For a test that hangs; no test is held to it.
    testTimeout: scaleDeadline(60_000),
    hookTimeout: scaleDeadline(60_000),
    expect: { poll: { timeout: scaleDeadline(10_000) } },
    setupFiles: ['support/loop-watch.ts', 'support/equality.ts', 'support/file-times.ts'],
  },
});
