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
    if (name === 'emulator') expectPeers(stdout);
    expect(page()).toBe(before);
  },
);

function expectPeers(stdout: string): void {
  for (const name of ['latchkey', 'oidc-provider', 'oauth2-mock-server', 'bare fastify']) {
    expect(stdout).toMatch(new RegExp(`^refresh: requests +${name} +[1-9]\\d* 1/s$`, 'm'));
    expect(stdout).toMatch(new RegExp(`^start-up +${name} +[1-9][\\d.]* ms$`, 'm'));
  }
  expect(stdout).toMatch(/^poll: requests +latchkey +[1-9]\d* 1\/s$/m);
  // A round by itself has no spread, so nothing is said of how the one compares with the other.
  expect(stdout).toMatch(/^NOT MEASURED: refreshes a second: .*fewer than 3 rounds/m);
}

const WRONG = [['nothing'], ['--slow'], ['--quick=x'], ['--'], ['emulator', 'hub'], ['--against='], ['--against']];

test.each(inShort(WRONG, [['emulator', 'hub']]))('bench %s is wrong usage', async (...args) => {
  const { status, stdout, stderr } = await run(bench, args, { timeout: patient(60_000) });
  expect({ status, stdout }).toEqual({ status: 2, stdout: '' });
  expect(stderr).toMatch(
    /^scripts\/bench: found \S+; allowed are --quick, --against REVISION and hand-out, .*emulator/m,
  );
});
