import { expect, test } from 'vitest';
import { runShortForm } from '../../chaos/experiment.ts';
import { experiment } from '../../chaos/parsers.experiment.ts';

test('no external input ends or hangs the hub or makes it reveal a secret', async () => {
  const figures = await runShortForm(experiment);
  expect(Object.keys(figures).length).toBeGreaterThanOrEqual(9);
  for (const [name, runs] of Object.entries(figures)) expect(Number(runs), name).toBeGreaterThanOrEqual(60);
});
