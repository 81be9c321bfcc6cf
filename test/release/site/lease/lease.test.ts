// The lease of a refresh in all scenarios that are explored in seconds, or in hours, and the defects that the check finds.
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { execute, explore } from '../../../site/lease/explorer.ts';
import type { Defect, LeaseScenario } from '../../../site/lease/scenario.ts';
import { CHOICES, DEEP, LONG_SCENARIOS, ONE_FAULT, SHORT_SCENARIOS } from '../../../site/lease/scenarios.ts';
import { IS_LONG_FORM, selectRows } from '../../../support/long.ts';

describe('the lease of a refresh', () => {
  test.each(selectRows(LONG_SCENARIOS, SHORT_SCENARIOS))(
    'every order of what two hubs do keeps it: %s',
    async (_name, scenario) => {
      const result = await explore(scenario);
      expect(result.counterExample).toBeNull();
      expect(result.isComplete).toBe(true);
      const unavoidable = Object.keys(result.exceptions);
      if (scenario.maxFaults === 0) expect(unavoidable).toEqual([]);
    },
    7_200_000,
  );

  test.each([
    ['revokes the family', DEEP],
    ['repeats an answer for a minute', { ...DEEP, retryLostAnswer: 'early', grace: 60_000 } as const],
  ])(
    'random executions with up to three faults keep it at a portal that %s',
    async (_name, scenario) => {
      const property = fc.asyncProperty(CHOICES, async (list) => {
        expect(await execute(scenario, list)).toBeNull();
      });
      const rounds = IS_LONG_FORM ? 200_000 : 250;
      await fc.assert(property, { numRuns: rounds, ...(!IS_LONG_FORM && { seed: 1 }) });
    },
    7_200_000,
  );
});

test.each<readonly [Defect, LeaseScenario, RegExp]>([
  ['begin_drops_doubt', { ...ONE_FAULT, faults: ['kill'] }, /was sent 1 times, and knows of 0/],
  ['portal_client_ignores_deadline', { ...ONE_FAULT, faults: ['pause'], maxAdvances: 2 }, /after the time for that/],
])('the check of the lease finds the defect %s', async (defect, scenario, message) => {
  const { counterExample } = await explore({ ...scenario, defects: [defect] });
  expect(counterExample?.message).toMatch(message);
});
