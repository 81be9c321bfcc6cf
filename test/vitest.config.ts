import { availableParallelism } from 'node:os';
import { join } from 'node:path';
import { defineConfig } from 'vitest/config';
import { BaseSequencer, type TestSpecification } from 'vitest/node';
import { scaleDeadline } from './support/deadlines.ts';
import { SHARED_CACHE } from './support/program.ts';

/**
 * What takes longest on an idle machine, longest first: parts of paths. Whatever is not named goes by what vitest knows
 * of it, which is nothing in a fresh clone.
 */
const LONG = [
  'release/package/',
  'release/machine/',
  'release/container/',
  'release/hub/',
  'release/mdns/',
  'release/oauth-servers/',
  'release/browser/',
  'release/chaos/',
  'release/site/',
  'release/',
  'chaos/',
  'reliability/',
  'hub/',
  'site/',
  'page/redirected-codes',
  'browser/',
  'cli/pair/',
  'project/',
  'systemd/',
];

/** Starts the files that take longest first, so that none of them is left over when all others are done. */
class LongestFirstSequencer extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const sorted = await super.sort(files);
    return sorted.toSorted((a, b) => rankOf(a) - rankOf(b));
  }
}

function rankOf({ moduleId }: TestSpecification): number {
  const found = LONG.findIndex((name) => moduleId.startsWith(`${import.meta.dirname}/${name}`));
  return found === -1 ? LONG.length : found;
}

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
