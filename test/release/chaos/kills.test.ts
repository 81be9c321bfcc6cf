import { expect, test } from 'vitest';
import { runShortForm } from '../../chaos/experiment.ts';
import { experiment } from '../../chaos/kills.experiment.ts';

test('killing the hub loses no grant that the portal would still accept', async () => {
  const figures = await runShortForm(experiment);
  const events = [
    'kills',
    'kills during the start',
    'kills during a pairing',
    'interrupted refreshes',
    'interrupted refreshes at an oauth2 portal',
    'pairings meanwhile',
    'pairings meanwhile at an oauth2 portal',
    'tokens issued meanwhile',
    'unpairings during a refresh',
    'imports over a grant',
    'kills during an import',
    'kills while a refresh waits for its turn at a paced portal',
    'refreshes with a compressed answer',
    'refreshes refused by a firewall',
  ];
  for (const portal of ['previous token valid', 'reuse refused']) {
    for (const event of events) expect(figures[`${portal}: ${event}`], `${portal}: ${event}`).toBeGreaterThan(0);
  }
  // If reuse is refused, at least one grant must be lost, so that the hub's report of the reason was checked.
  expect(figures['reuse refused: grants lost']).toMatch(/^([1-9]\d*), \1 of them by a kill and reported$/);
});
