import { expect, test } from 'vitest';
import { shortForm } from './experiment.ts';
import { experiment } from './kills.experiment.ts';

test('no kill costs a grant that the portal would still go on with', async () => {
  const { figures, broken } = await shortForm(experiment);
  expect(broken).toEqual([]);
  const sum = (what: string) => {
    const found = Object.entries(figures).filter(([name]) => name.endsWith(`: ${what}`));
    return found.reduce((all, [, count]) => all + Number(count), 0);
  };
  expect(sum('kills')).toBeGreaterThanOrEqual(38);
  expect(sum('kills in start-up')).toBeGreaterThan(0);
  expect(sum('grants in doubt after a start')).toBeGreaterThan(0);
  expect(sum('pairings meanwhile')).toBeGreaterThan(10);
  expect(sum('hand-outs meanwhile')).toBeGreaterThan(100);
});
