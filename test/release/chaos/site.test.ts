import { expect, test } from 'vitest';
import { runShortForm, SKIPPED } from '../../chaos/experiment.ts';
import { experiment } from '../../chaos/site.experiment.ts';

test('a site loses no grant and sends no token twice while hubs and the database fail', async (ctx) => {
  const figures = await runShortForm(experiment);
  if (SKIPPED in figures) return ctx.skip(String(figures[SKIPPED]));
  const events = [
    'refreshes, each with a compressed answer',
    'kills',
    'pauses',
    'partitions from the database',
    'partitions from the portal',
    'partitions from appliances and hubs',
    'promotions',
    'hubs added and removed',
    'of them tried',
    'imports over a grant, each before a kill',
    'unpairings during a refresh of another hub',
    'refreshes at a paced portal',
    'refreshes refused by a firewall',
  ];
  for (const event of events) expect(figures[event], event).toBeGreaterThan(0);
  expect(figures['database restarts']).toBe('1 fast, 1 immediate, 1 killed');
});
