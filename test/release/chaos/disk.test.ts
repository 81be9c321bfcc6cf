import { expect, it } from 'vitest';
import { experiment } from '../../chaos/disk.experiment.ts';
import { runShortForm } from '../../chaos/experiment.ts';

it('disk faults lose no grant that was on the disk', async (ctx) => {
  const figures = await runShortForm(experiment);
  for (const outcome of ['recovered', 'recovered from the snapshot', 'no recovery needed']) {
    expect(figures[`corruptions, ${outcome}`], outcome).toBeGreaterThan(0);
  }
  if (figures['full disk'] !== undefined) ctx.skip(String(figures['full disk']));
  expect(figures).toMatchObject({ 'full disk, rounds': 2, 'read-only, rounds': 1 });
  for (const count of ['problems reported', 'tokens issued'].flatMap((each) => [
    `full disk, ${each}`,
    `read-only, ${each}`,
  ])) {
    expect(figures[count], count).toBeGreaterThan(0);
  }
});
