// The lease of a refresh, with the real broker and the real store of two hubs on a model of the database's table, in
// virtual time. What the hubs, the database, the portal and the faults do next is chosen step by step.
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { execute, explore } from './explorer.ts';
import { CHOICES, DEEP, DEEP_WITH_COMMANDS, SHORT_SCENARIOS } from './scenarios.ts';

/** The longer ones are in test/release/site. */
const SCENARIOS = SHORT_SCENARIOS.filter(([name]) =>
  [
    'with a promotion that loses new tokens, and a request',
    'with an import, and a killed hub or a lost answer',
    'with an import, and an unpairing at the other hub',
    'with an import whose tokens are stored although that has failed',
    'with news before an import at a hub that loses the database',
  ].includes(name),
);

test('every order of what two hubs do keeps the lease of a refresh, in small scenarios', async () => {
  expect(SCENARIOS).toHaveLength(5);
  for (const [name, scenario] of SCENARIOS) {
    expect(await explore(scenario), name).toMatchObject({ counterExample: null, isComplete: true });
  }
});

test('random executions with up to three faults keep the lease', async () => {
  for (const scenario of [DEEP, DEEP_WITH_COMMANDS]) {
    const property = fc.asyncProperty(CHOICES, async (list) => {
      expect(await execute(scenario, list)).toBeNull();
    });
    await fc.assert(property, { numRuns: 50, seed: 1 });
  }
});

test('the check of the lease finds a begin that ignores lease and revision', async () => {
  const requests = SHORT_SCENARIOS.find(([name]) => name === 'with requests at both hubs')?.[1];
  if (requests === undefined) throw new Error('there is no such scenario');
  const { counterExample } = await explore({ ...requests, defects: ['begin_ignores_lease_and_revision'] });
  expect(counterExample?.message).toMatch(/without an attempt of its own/);
});
