// The lease of a refresh, with the real broker and the real store of two hubs on a model of the database's table, in
// virtual time. What the hubs, the database, the portal and the faults do next is chosen step by step.
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { IS_LONG_FORM, selectRows } from '../../support/long.ts';
import { execute, explore } from './explorer.ts';
import { type Defect, type LeaseScenario, QUIET } from './scenario.ts';

type Row = readonly [name: string, scenario: LeaseScenario];

const ONE_FAULT = { ...QUIET, maxFaults: 1, maxAdvances: 1 };

/** A hub sends a refresh, and its answer comes. Then a standby is promoted that has lost commits. */
const ANSWERED = ['A request', 'A call 1', 'A send 0', 'A response 0'];
const PROMOTION: LeaseScenario = {
  ...{ ...QUIET, faults: ['promotion'], maxFaults: 1, maxAdvances: 0, maxRequests: 2, maxLostCommits: 2 },
};
const PROMOTION_AND_KILL: LeaseScenario = { ...PROMOTION, faults: ['promotion', 'kill'], maxFaults: 2 };
const LOST_ATTEMPT: LeaseScenario = { ...PROMOTION, opening: [...ANSWERED, 'promote 1'] };
const LOST_TOKENS: LeaseScenario = { ...PROMOTION, opening: [...ANSWERED, 'A call 2', 'promote 1'] };
const LOST_BOTH: LeaseScenario = { ...PROMOTION, opening: [...ANSWERED, 'A call 2', 'promote 2'] };

/** Small enough that every state is visited in seconds. */
const SHORT: readonly Row[] = [
  ['without faults, with late answers of the database', { ...QUIET, maxSlowAnswers: 1 }],
  ['with a request of an appliance', { ...QUIET, maxAdvances: 0, maxRequests: 1, maxSlowAnswers: 1 }],
  ['with requests at both hubs', { ...QUIET, maxAdvances: 0, maxRequests: 2 }],
  ['with a pause of a hub', { ...ONE_FAULT, faults: ['pause'], maxSlowAnswers: 1 }],
  ['with a killed hub', { ...ONE_FAULT, faults: ['kill'] }],
  ['with a hub that loses the database', { ...ONE_FAULT, faults: ['disconnect'] }],
  ['with a lost answer', { ...ONE_FAULT, faults: ['lost_answer', 'unreachable'], maxAdvances: 2 }],
  ['with a pause between the check and the write', { ...ONE_FAULT, faults: ['late_write'], maxAdvances: 2 }],
  ['with a promotion that loses an attempt, and a request', LOST_ATTEMPT],
  ['with a promotion that loses new tokens, and a request', LOST_TOKENS],
  ['with a promotion that loses an attempt and its tokens, and a request', LOST_BOTH],
  [
    'with a promotion that loses an attempt and its tokens, and a killed hub',
    { ...PROMOTION_AND_KILL, ...{ maxRequests: 1, opening: LOST_BOTH.opening ?? [] } },
  ],
  [
    'with a promotion that loses an attempt and its tokens, and a late hub',
    { ...LOST_BOTH, ...{ maxAdvances: 1, maxRequests: 1 } },
  ],
  [
    'with a promotion that loses an attempt under way',
    { ...PROMOTION, ...{ maxRequests: 1, opening: [...ANSWERED.slice(0, 3), 'promote 1'] } },
  ],
];
const LONG: readonly Row[] = [
  ...SHORT,
  ['with a pause of a hub for longer than a lease', { ...ONE_FAULT, faults: ['pause'], maxAdvances: 2 }],
  ['with a pause, and a request', { ...ONE_FAULT, faults: ['pause'], maxRequests: 1 }],
  ['with a killed hub, and time for another refresh', { ...ONE_FAULT, faults: ['kill'], maxAdvances: 2 }],
  ['with a promotion that loses two commits', { ...ONE_FAULT, faults: ['promotion'], maxLostCommits: 2 }],
  [
    'with a promotion that loses an attempt under way, and a request',
    { ...PROMOTION, opening: [...ANSWERED.slice(0, 3), 'promote 1'] },
  ],
  [
    'with a promotion that loses an attempt under way, and a killed hub',
    { ...PROMOTION_AND_KILL, ...{ maxRequests: 1, opening: [...ANSWERED.slice(0, 3), 'promote 1'] } },
  ],
  ['with a promotion that loses new tokens, a request, and a late hub', { ...LOST_TOKENS, maxAdvances: 1 }],
  [
    'with a promotion that loses an attempt and its tokens, and a pause or another promotion',
    {
      ...{ ...LOST_BOTH, faults: ['promotion', 'pause'], maxFaults: 2 },
      ...{ maxAdvances: 1, maxRequests: 1, maxLostCommits: 1 },
    },
  ],
  ['with a lost answer, and requests', { ...ONE_FAULT, faults: ['lost_answer'], maxAdvances: 0, maxRequests: 2 }],
  ['with a late write, and a request', { ...ONE_FAULT, faults: ['late_write'], maxRequests: 1 }],
  ['with a rejected access token', { ...QUIET, maxAdvances: 0, maxRejections: 1 }],
];

describe('the lease of a refresh', () => {
  test.each(selectRows(LONG, SHORT))(
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

  const DEEP: LeaseScenario = {
    ...QUIET,
    faults: ['pause', 'kill', 'disconnect', 'promotion', 'lost_answer', 'unreachable', 'late_write'],
    ...{ maxFaults: 3, maxAdvances: 4, maxRequests: 3, maxRejections: 1, maxLostCommits: 2, maxSlowAnswers: 3 },
  };

  test.each([
    ['revokes the family', DEEP],
    ['repeats an answer for a minute', { ...DEEP, retryLostAnswer: 'early', grace: 60_000 } as const],
  ])(
    'random executions with up to three faults keep it at a portal that %s',
    async (_name, scenario) => {
      const choices = fc.array(fc.nat({ max: 5039 }), { minLength: 60, maxLength: 60 });
      const property = fc.asyncProperty(choices, async (list) => {
        expect(await execute(scenario, list)).toBeNull();
      });
      const rounds = IS_LONG_FORM ? 200_000 : 500;
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

  test.each<readonly [Defect, LeaseScenario, RegExp]>([
    ['begin_ignores_lease_and_revision', requests, /without an attempt of its own/],
    ['lease_of_no_time', requests, /its lease may end before the answer/],
    ['begin_drops_doubt', kill, /was sent 1 times, and knows of 0/],
    ['end_drops_doubt', kill, /was sent 1 times, and knows of 0/],
    ['replace_keeps_attempt', requests, /about another refresh token/],
    ['portal_client_ignores_deadline', pause, /after the time for that/],
    ['news_applied_over_refresh', promotion, /was sent 1 times, and knows of 0/],
    ['nothing_is_put_back', promotion, /not refreshed any more/],
    ['confirm_while_settling', otherHubFirst, /B sends refresh-1/],
  ])('the check finds the defect %s', async (defect, scenario, message) => {
    const { counterExample } = await explore({ ...scenario, defects: [defect] });
    expect(counterExample?.message).toMatch(message);
  });
});
