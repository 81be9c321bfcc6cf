import { expect, it } from 'vitest';
import { experiment } from './disk.experiment.ts';
import { shortForm } from './experiment.ts';

it('no grant that was on a disk is lost to what happens to the disk', async (ctx) => {
  const { figures, broken } = await shortForm(experiment);
  expect(broken).toEqual([]);
  expect(figures).toMatchObject({ corruptions: 12 });
  if (figures['full disk'] !== undefined) ctx.skip(String(figures['full disk']));
  expect(figures).toMatchObject({ 'full disk, rounds': 2, 'read-only, rounds': 1 });
  expect(Number(figures['full disk, noticed'])).toBeGreaterThan(0);
});
