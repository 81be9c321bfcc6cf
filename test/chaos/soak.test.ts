import { expect, test } from 'vitest';
import { shortForm } from './experiment.ts';
import { experiment } from './soak.experiment.ts';

test('under load and every fault nothing grows, and every token is the right one', async () => {
  const { figures, broken } = await shortForm(experiment);
  expect(broken).toEqual([]);
  const count = (name: string) => Number.parseInt(String(figures[name]), 10);
  expect(count('hand-outs asked for')).toBeGreaterThan(1000);
  expect(count('tokens handed out')).toBeGreaterThan(500);
  for (const kind of ['status', 'commit_then_drop', 'tls_failure']) {
    expect(figures['faults met']).toMatch(new RegExp(`${kind} [1-9]`));
  }
}, 120_000);
