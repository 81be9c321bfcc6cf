import { expect, test } from 'vitest';
import { measureRefreshSteps } from './refresh-steps.ts';

const STEPS = 500;

test('a refresh arms as many timers and reads the clock as often with 2000 grants as with 10', async () => {
  const few = await measureRefreshSteps(10, STEPS);
  const many = await measureRefreshSteps(2000, STEPS);
  expect(many).toMatchObject({ armed: few.armed, readings: few.readings, timers: few.timers });
  // One timer for the next due refresh, and one for the timeout of this one.
  expect(many.armed).toBe(2);
  expect(many.timers).toBe(2);
});
