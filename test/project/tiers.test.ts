import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { budgetLine, measureMachine } from '../../scripts/test.d/budget.ts';
import { root } from './checkout.ts';

test('the first tier uses nothing of test/release', () => {
  const files = globSync('test/**/*.ts', { cwd: root, exclude: ['test/release/**', '**/*.experiment.ts'] });
  expect(files.length).toBeGreaterThan(300);
  const imports = /(?:from|import\() *'[^']*\/release\//;
  expect(files.filter((file) => imports.test(readFileSync(join(root, file), 'utf8')))).toEqual([]);
});

describe('the budget of a run', () => {
  const BUDGET = { wall: 360, cpu: 480 };

  test.each([
    ['within the budget', 480, 1],
    ['over it by less than a tenth', 527, 1],
    ['over it on a machine that is slow in proportion', 900, 2],
  ])('a run is reported in one line if it is %s', (_what, cpu, cpuFactor) => {
    expect(budgetLine({ wall: 1002, cpu }, BUDGET, cpuFactor)).toMatch(
      /^The run took 16\.7 min and \d+\.\d min of processor time; it may take up to 6\.0 min and 8\.0 min/,
    );
  });

  test.each([
    ['on the reference machine', 600, 1, 25],
    ['on a machine that is faster than the reference', 600, 0.5, 25],
    ['on a slow machine', 1200, 2, 25],
  ])('a run that is over its budget %s says by how much', (_what, cpu, cpuFactor, percent) => {
    expect(budgetLine({ wall: 100, cpu }, BUDGET, cpuFactor)).toMatch(
      new RegExp(`^!!! OVER BUDGET by ${percent} %: the run took .* Make a test cheaper`),
    );
  });

  test('the speed of the machine is measured in wall and processor time', () => {
    const { start, wallFactor, cpuFactor } = measureMachine();
    for (const value of [start, wallFactor, cpuFactor]) expect(value).toBeGreaterThan(0);
  });
});
