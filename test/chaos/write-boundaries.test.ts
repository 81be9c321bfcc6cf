import { expect, test } from 'vitest';
import { shortForm } from './experiment.ts';
import { canStopAtCalls } from './system-calls.ts';
import { experiment } from './write-boundaries.experiment.ts';

test.skipIf(!canStopAtCalls())(
  'killed at every write boundary of a refresh, the hub has the old generation or the new one',
  async () => {
    const { figures, broken } = await shortForm(experiment);
    expect(broken).toEqual([]);
    expect(figures['refresh: boundaries killed at']).toBeGreaterThanOrEqual(8);
    expect(figures['refresh: syncs of one that went well, each before what follows from it']).toBeGreaterThanOrEqual(2);
    expect(figures['pairing: boundaries killed at']).toBe(4);
  },
);
