import { readFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { ratioOf, ratioTarget } from '../../../scripts/bench.d/suite.ts';
import { missingPrograms, SUITES } from '../../../scripts/bench.d/suites.ts';
import { root, runCommand } from '../../project/checkout.ts';
import { scaleDeadline } from '../../support/deadlines.ts';
import { selectRows } from '../../support/long.ts';

const bench = join(root, 'scripts/bench');
const page = () => readFileSync(join(root, 'docs/benchmarks.md'), 'utf8');
const names = SUITES.map(({ name }) => name);
/** The cheapest experiment. */
const CHEAPEST = 'memory';

test.for(selectRows(names, [CHEAPEST]))(
  'a quick bench of %s runs, shows only what one round can measure, and writes nothing',
  async (name, ctx) => {
    if (availableParallelism() < 2) ctx.skip('server and load have a core each');
    const suites = SUITES.filter((suite) => suite.name === name);
    const needs = missingPrograms(suites);
    if (needs.length > 0) ctx.skip(`needs ${needs.map(({ pack }) => pack).join(', ')}`);
    const before = page();
    const { status, stdout, stderr } = await runCommand(bench, ['--quick', name], { timeout: scaleDeadline(60_000) });
    expect(status, stderr).toBe(0);
    expect(stdout).toMatch(/^\S.* latchkey +[\d.]/m);
    expect(stdout).not.toMatch(/NaN|Infinity|undefined/);
    expect(page()).toBe(before);
  },
);

test.each([
  [[1, 1.1, 1.2], 'met', '1.10 × (1.00–1.20)'],
  [[2, 2.1, 2.2], 'not met', '2.10 × (2.00–2.20)'],
  [[1, 2, 4], 'not measured', '– (the machine was too busy: interquartile range 1.00 to 4.00)'],
  [[1, 1], 'not measured', '– (fewer than 3 rounds)'],
])('bench compares ratios of %j with a limit of 1.5 times, and reports that it is %s', (values, verdict, measured) => {
  const other = { values: values.map(() => 1) };
  expect(ratioTarget('', ratioOf({ values }, other), { atMost: 1.5 })).toEqual({ text: '', measured, verdict });
});

const WRONG = [['nothing'], ['--slow'], ['--quick=x'], ['small', 'hub'], ['--against='], ['--against']];

test.each(selectRows(WRONG, [['small', 'hub']]))('scripts/bench %s is wrong usage', async (...args) => {
  const { status, stdout, stderr } = await runCommand(bench, args, { timeout: scaleDeadline(60_000) });
  expect({ status, stdout }).toEqual({ status: 2, stdout: '' });
  expect(stderr).toMatch(/^scripts\/bench: .+; allowed are --quick, --against REVISION and hand-out, .*memory$/m);
});
