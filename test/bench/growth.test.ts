import { join } from 'node:path';
import { expect, test } from 'vitest';
import { refreshSteps } from '../../scripts/bench.d/growth/scheduling.ts';

const root = join(import.meta.dirname, '../..');
const STEPS = 500;

test('a refresh arms as many timers and reads the clock as often, however many grants there are', async () => {
  const few = await refreshSteps({ root }, 10, STEPS);
  const many = await refreshSteps({ root }, 2000, STEPS);
  expect(many).toMatchObject({ armed: few.armed, readings: few.readings, timers: few.timers });
  // One for the next that is due, one that tells whether this one hangs.
  expect(many.armed).toBe(2);
  expect(many.timers).toBe(2);
});
