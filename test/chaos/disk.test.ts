import { expect, it } from 'vitest';
import { experiment } from './disk.experiment.ts';
import { runShortForm } from './experiment.ts';

it('disk faults lose no grant that was on the disk', async (ctx) => {
  const { figures, broken } = await runShortForm(experiment);
  expect(broken).toEqual([]);
  for (const outcome of ['recovered', 'from the copy', 'nothing amiss']) {
    expect(figures[`corruptions, ${outcome}`], outcome).toBeGreaterThan(0);
  }
  if (figures['full disk'] !== undefined) ctx.skip(String(figures['full disk']));
  expect(figures).toMatchObject({ 'full disk, rounds': 2, 'read-only, rounds': 1 });
  for (const count of ['full disk, noticed', 'full disk, hand-outs', 'read-only, noticed', 'read-only, hand-outs']) {
    expect(figures[count], count).toBeGreaterThan(0);
  }
});
