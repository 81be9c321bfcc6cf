import { expect, test } from 'vitest';
import { experiment } from './clocks.experiment.ts';
import { runShortForm } from './experiment.ts';
import { clocksSkipReason } from './fake-machine-clocks.ts';

test('no clock, however wrong it is or becomes, costs a grant or has a dead token handed out', async (context) => {
  const reason = await clocksSkipReason();
  context.skip(reason !== null, reason ?? '');
  const { figures, broken } = await runShortForm(experiment);
  expect(broken).toEqual([]);
  expect(figures['jumps while running']).toBe(3);
  expect(figures['hand-outs during jumps']).toBeGreaterThan(10);
});
