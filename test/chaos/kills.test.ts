import { expect, test } from 'vitest';
import { runShortForm } from './experiment.ts';
import { experiment } from './kills.experiment.ts';

test('killing the hub loses no grant that the portal would still accept', async () => {
  const { figures, broken } = await runShortForm(experiment);
  expect(broken).toEqual([]);
  const events = [
    'kills',
    'kills in start-up',
    'kills while an appliance was being paired',
    'refreshes cut short',
    'pairings meanwhile',
    'hand-outs meanwhile',
  ];
  for (const portal of ['previous token good', 'reuse refused']) {
    for (const event of events) expect(figures[`${portal}: ${event}`], `${portal}: ${event}`).toBeGreaterThan(0);
  }
  // Where reuse is refused, a grant was lost, so that it was looked at whether the hub says why.
  expect(figures['reuse refused: grants lost']).toMatch(/^([1-9]\d*), \1 of them in a kill, and said so$/);
});
