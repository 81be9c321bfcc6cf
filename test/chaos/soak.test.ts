import { expect, test } from 'vitest';
import { shortForm } from './experiment.ts';
import { experiment } from './soak.experiment.ts';

test('under load and every fault nothing grows, and every token is the right one', async () => {
  const { broken } = await shortForm(experiment);
  expect(broken).toEqual([]);
}, 120_000);
