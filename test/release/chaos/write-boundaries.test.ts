import { expect, test } from 'vitest';
import { runShortForm } from '../../chaos/experiment.ts';
import { canTraceSystemCalls } from '../../chaos/system-calls.ts';
import { experiment } from '../../chaos/write-boundaries.experiment.ts';

test.skipIf(!canTraceSystemCalls())(
  'a hub killed before any write, sync, connection or send has either the old or the new generation',
  async () => {
    const figures = await runShortForm(experiment);
    const calls = {
      refresh: ['pwrite64', 'fdatasync', 'connect', 'writev', 'write'],
      pairing: ['pwrite64', 'fdatasync', 'writev', 'write'],
    };
    for (const [work, kinds] of Object.entries(calls)) {
      for (const call of kinds) {
        expect(figures[`${work}: calls with a kill`]).toMatch(new RegExp(`\\b${call} `));
      }
      for (const left of ['old generation on disk', 'old generation on disk, in doubt', 'new generation on disk']) {
        expect(figures[`${work}: ${left}`], `${work}: ${left}`).toBeGreaterThan(0);
      }
    }
    // One for the attempt that is written ahead, and one for its result.
    expect(figures['refresh: syncs without a kill, each before the sends that depend on it']).toBeGreaterThanOrEqual(2);
  },
);
