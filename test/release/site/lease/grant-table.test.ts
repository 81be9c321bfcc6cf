// The model of the table of grants does what PostgreSQL does.
import fc from 'fast-check';
import { expect, test } from 'vitest';
import type { TableDefect } from '../../../site/lease/grant-table.ts';
import { siteServer } from '../../../site/site-harness.ts';
import { IS_LONG_FORM } from '../../../support/long.ts';
import { type Event, modelSite, postgresSite, resultsOf, type Step } from './table-sites.ts';

const steps = fc.array(
  fc.oneof(
    {
      weight: 8,
      arbitrary: fc.tuple(
        fc.constantFrom('find', 'begin', 'end', 'reject', 'replace', 'forget', 'put back'),
        fc.constantFrom(0, 1),
        fc.nat({ max: 3 }),
      ),
    },
    {
      weight: 2,
      arbitrary: fc.tuple(fc.constantFrom('end lease', 'shorten lease', 'remember', 'lose commits', 'settle')),
    },
  ),
  { minLength: 40, maxLength: 40 },
) as fc.Arbitrary<(Step | Event)[]>;

async function resultsOfBoth(list: readonly (Step | Event)[]): Promise<{ real: unknown[]; model: unknown[] }> {
  await using site = await postgresSite(await siteServer());
  return { real: await resultsOf(site, list), model: await resultsOf(await modelSite(), list) };
}

test('the model of the table answers random calls of two hubs as PostgreSQL does', async () => {
  const property = fc.asyncProperty(steps, async (list) => {
    const { real, model } = await resultsOfBoth(list);
    expect(model).toEqual(real);
  });
  await fc.assert(property, { numRuns: IS_LONG_FORM ? 300 : 8 });
}, 7_200_000);

// The first hub reads the table after each step, and the second one only if a step says so.
test.each<readonly [TableDefect, readonly (Step | Event)[]]>([
  [
    'begin_ignores_revision',
    [
      ['find', 1, 0],
      ['begin', 0, 0],
      ['end', 0, 1],
      ['begin', 1, 2],
    ],
  ],
  [
    'end_ignores_attempt_id',
    [['find', 1, 0], ['begin', 1, 0], ['end lease'], ['end', 0, 1], ['begin', 0, 1], ['end lease'], ['end', 1, 0]],
  ],
  [
    'replace_ignores_generation',
    [
      ['replace', 0, 0],
      ['replace', 1, 3],
    ],
  ],
  [
    'forget_keeps_generation',
    [
      ['forget', 0, 0],
      ['replace', 1, 0],
    ],
  ],
  ['end_ignores_lease', [['begin', 0, 0], ['find', 1, 0], ['shorten lease'], ['end', 1, 1]]],
  ['begin_while_settling', [['lose commits'], ['find', 1, 0], ['begin', 1, 1]]],
])('PostgreSQL does not answer as a model of the table with the defect %s', async (defect, list) => {
  const { real, model } = await resultsOfBoth(list);
  expect(model).toEqual(real);
  expect(await resultsOf(await modelSite([defect]), list)).not.toEqual(real);
});
