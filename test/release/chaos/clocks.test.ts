import { expect, test } from 'vitest';
import { experiment } from '../../chaos/clocks.experiment.ts';
import { runShortForm } from '../../chaos/experiment.ts';
import { clocksSkipReason } from '../../chaos/fake-machine-clocks.ts';

test('a wrong or jumping clock costs no grant, and no expired token is issued', async (context) => {
  const reason = await clocksSkipReason();
  context.skip(reason !== null, reason ?? '');
  const figures = await runShortForm(experiment);
  expect(figures['jumps while running']).toBe(3);
  expect(figures['tokens issued during jumps']).toBeGreaterThan(10);
});
