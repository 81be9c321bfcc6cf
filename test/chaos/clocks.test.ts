import { expect, test } from 'vitest';
import { whyNoClocks } from './clock-machine.ts';
import { experiment } from './clocks.experiment.ts';
import { shortForm } from './experiment.ts';

test('no clock, however wrong it is or becomes, costs a grant or has a dead token handed out', async (context) => {
  const reason = await whyNoClocks();
  context.skip(reason !== null, reason ?? '');
  const { figures, broken } = await shortForm(experiment);
  expect(broken).toEqual([]);
  expect(figures['jumps while running']).toBe(3);
  expect(figures['hand-outs during jumps']).toBeGreaterThan(10);
});
