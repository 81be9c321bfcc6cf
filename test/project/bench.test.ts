import { readFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { missingPrograms, SUITES } from '../../scripts/bench.d/suites.ts';
import { inShort } from '../support/long.ts';
import { patient } from '../support/patience.ts';
import { root, run } from './checkout.ts';

const bench = join(root, 'scripts/bench');
const page = () => readFileSync(join(root, 'docs/benchmarks.md'), 'utf8');
const names = SUITES.map(({ name }) => name);
/** The one that costs least, and whose load needs no core of its own. */
const CHEAPEST = 'portal-cost';

test.for(inShort(names, [CHEAPEST]))(
  'a quick bench of %s runs through, says nothing of what one round can not tell, and writes nothing',
  async (name, ctx) => {
    if (name !== CHEAPEST && availableParallelism() < 2) ctx.skip('server and load have a core each');
    const needs = missingPrograms(SUITES.filter((suite) => suite.name === name));
    if (needs.length > 0) ctx.skip(`needs ${needs.map(({ pack }) => pack).join(', ')}`);
    const before = page();
    const { status, stdout, stderr } = await run(bench, ['--quick', name], { timeout: patient(60_000) });
    expect(status, stderr).toBe(0);
    expect(stdout).toMatch(/^\S.* latchkey +[\d.]/m);
    expect(stdout).not.toMatch(/NaN|Infinity|undefined/);
    expect(page()).toBe(before);
  },
);

const WRONG = [['nothing'], ['--slow'], ['--quick=x'], ['--'], ['small', 'hub'], ['--against='], ['--against']];

test.each(inShort(WRONG, [['small', 'hub']]))('bench %s is wrong usage', async (...args) => {
  const { status, stdout, stderr } = await run(bench, args, { timeout: patient(60_000) });
  expect({ status, stdout }).toEqual({ status: 2, stdout: '' });
  expect(stderr).toMatch(
    /^scripts\/bench: found \S+; allowed are --quick, --against REVISION and hand-out, .*portal-cost/m,
  );
});
