// The lease of a refresh in all scenarios that are explored in seconds, or in hours, and the defects that the check finds.
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { execute, explore } from '../../../site/lease/explorer.ts';
import { type Defect, type LeaseScenario, QUIET } from '../../../site/lease/scenario.ts';
import {
  ANSWERED,
  CHOICES,
  DEEP,
  DEEP_WITH_COMMANDS,
  LONG_SCENARIOS,
  LOST_ATTEMPT,
  ONE_FAULT,
  SHORT_SCENARIOS,
} from '../../../site/lease/scenarios.ts';
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
    ['revokes the family, with an import and an unpairing', DEEP_WITH_COMMANDS],
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

describe('the check of the lease', () => {
  const kill: LeaseScenario = { ...ONE_FAULT, faults: ['kill'] };
  const promotion: LeaseScenario = { ...ONE_FAULT, faults: ['promotion'], maxLostCommits: 2 };
  /** The other hub is back first, and gets a request at once. */
  const otherHubFirst: LeaseScenario = {
    ...LOST_ATTEMPT,
    opening: [...ANSWERED, 'promote 1', 'B return', 'B call 1', 'B call 2', 'B call 3', 'B request'],
  };
  const pause: LeaseScenario = { ...ONE_FAULT, faults: ['pause'], maxAdvances: 2 };
  const requests: LeaseScenario = { ...QUIET, maxAdvances: 0, maxRequests: 2 };

  const unpairing: LeaseScenario = { ...QUIET, maxAdvances: 0, maxUnpairs: 1, opening: ANSWERED.slice(0, 3) };

  test.each<readonly [Defect, LeaseScenario, RegExp]>([
    ['begin_ignores_lease_and_revision', requests, /without an attempt of its own/],
    ['lease_of_no_time', requests, /its lease may end before the answer/],
    ['begin_drops_doubt', kill, /was sent 1 times, and knows of 0/],
    ['end_drops_doubt', kill, /was sent 1 times, and knows of 0/],
    ['replace_keeps_attempt', requests, /about another refresh token/],
    ['portal_client_ignores_deadline', pause, /after the time for that/],
    ['news_applied_over_refresh', promotion, /was sent 1 times, and knows of 0/],
    ['nothing_is_put_back', promotion, /not refreshed any more/],
    ['forget_keeps_generation', unpairing, /a late write brings refresh-2 back/],
    ['late_tokens_are_kept', unpairing, /nobody has revoked the login of refresh-1/],
    ['begin_while_settling', otherHubFirst, /B sends refresh-1/],
  ])('the check finds the defect %s', async (defect, scenario, message) => {
    const { counterExample } = await explore({ ...scenario, defects: [defect] });
    expect(counterExample?.message).toMatch(message);
  });
});
