import { expect, it } from 'vitest';
import { mapInSlices } from '../../src/system/slices.ts';
import { longestTurnShare } from '../support/loop-turns.ts';

it('mapping in slices lets the event loop handle other tasks, and keeps the order of the results', async () => {
  const items = Array.from({ length: 200 }, (_, index) => index);
  const busy = (item: number) => {
    for (const end = performance.now() + 0.5; performance.now() < end; );
    return item * 2;
  };
  let results: number[] = [];
  const share = await longestTurnShare(async () => {
    results = await mapInSlices(items, busy);
  });
  expect(results).toEqual(items.map((item) => item * 2));
  expect(share).toBeLessThan(0.5);
});
