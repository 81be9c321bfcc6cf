import { expect, test } from 'vitest';
import { runShortForm } from '../../chaos/experiment.ts';
import { experiment } from '../../chaos/lost-answers.experiment.ts';

test('a lost answer loses a grant only if the portal makes that unavoidable', async () => {
  const figures = await runShortForm(experiment);
  expect(figures['grace time, early: lost answers']).toBeGreaterThanOrEqual(4);
  expect(figures['grace time, early: grants lost']).toBe(0);
  expect(figures['grace time, early: of them with a lost answer']).toBeGreaterThan(0);
  expect(figures['revoke-family, late: families revoked']).toBeGreaterThanOrEqual(4);
  expect(figures['reuse refused, both modes: grants lost, each reported as a lost answer']).toBe(4);
  expect(figures['reuse refused, both modes: grants lost at an oauth2 portal']).toBe(2);
  expect(figures['reuse refused, both modes: imports with a lost answer, the former grant goes on']).toBe(2);
  for (const portal of ['grace time, early', 'revoke-family, late']) {
    expect(figures[`${portal}: lost answers of an oauth2 portal`], portal).toBeGreaterThanOrEqual(2);
  }
  for (const portal of ['grace time, early', 'revoke-family, late', 'reuse refused, both modes']) {
    expect(figures[`${portal}: tokens issued`], portal).toBeGreaterThan(0);
    expect(figures[`${portal}: refreshes with a compressed answer`], portal).toBeGreaterThan(0);
  }
});
