import { expect, test } from 'vitest';
import { runShortForm } from './experiment.ts';
import { canTraceSystemCalls } from './system-calls.ts';
import { experiment } from './write-boundaries.experiment.ts';

test.skipIf(!canTraceSystemCalls())(
  'a hub killed before any write, sync, connection or send has either the old or the new generation',
  async () => {
    const { figures, broken } = await runShortForm(experiment);
    expect(broken).toEqual([]);
    const calls = {
      refresh: ['pwrite64', 'fsync', 'connect', 'writev', 'write'],
      pairing: ['pwrite64', 'fsync', 'writev', 'write'],
    };
    for (const [work, kinds] of Object.entries(calls)) {
      for (const call of kinds) {
        expect(figures[`${work}: calls stepped through`]).toMatch(new RegExp(`\\b${call} `));
      }
      for (const left of ['left the old generation', 'left the old generation, in doubt', 'left the new generation']) {
        expect(figures[`${work}: ${left}`], `${work}: ${left}`).toBeGreaterThan(0);
      }
    }
    // One of what is written ahead, and one of what came of it.
    expect(figures['refresh: syncs of one that went well, each before what follows from it']).toBeGreaterThanOrEqual(2);
  },
);
