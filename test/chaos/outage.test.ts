import { expect, test } from 'vitest';
import { shortForm } from './experiment.ts';
import { experiment } from './outage.experiment.ts';

test('after a day without the portal every grant is fresh again by itself, and hubs come back spread out', async () => {
  const { figures, broken } = await shortForm(experiment);
  expect(broken).toEqual([]);
  expect(figures['refused, a day: requests a grant, at most one in, s']).toBeGreaterThanOrEqual(30);
  expect(figures['refused: last one fresh after, min']).toBeLessThanOrEqual(60);
});
