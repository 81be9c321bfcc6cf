import { describe, expect, test } from 'vitest';
import { resultsTable, summaryLine, updatePage } from '../../scripts/chaos.d/report.ts';
import { checkParser } from './parser-case.ts';
import { mutatedTexts } from './parsers-mutations.ts';
import { medianGrowth, slope } from './soak-statistics.ts';

test('the parser check finds a failing input, minimizes it and reports it', async () => {
  const trial = {
    name: 'a parser',
    inputs: mutatedTexts('abc'),
    try: (text: string) => (text.includes('%00') ? 'it fell over' : null),
  };
  const { wrong } = await checkParser(trial, 5000, { seed: 1, signal: new AbortController().signal });
  expect(wrong).toMatch(/^a parser: it fell over; the input: ".*%00.*"$/);
});

test('the leak check finds growth among noise and bursts, and does not report a burst alone', () => {
  const samples = (value: (second: number) => number) =>
    Array.from({ length: 300 }, (_, second) => ({ minutes: second / 60, value: value(second) }));
  const noise = (second: number) => ((second * 7919) % 13) - 6;
  const burst = (second: number) => (second > 100 ? 9000 : 0);
  expect(Math.abs(slope(samples((second) => 30_000 + noise(second))))).toBeLessThan(5);
  expect(slope(samples((second) => 30_000 + second * 10 + noise(second)))).toBeCloseTo(600, -1);
  expect(Math.abs(medianGrowth(samples((second) => 150_000 + burst(second) + noise(second))))).toBeLessThan(50);
  expect(medianGrowth(samples((second) => 150_000 + burst(second) + second * 20))).toBeCloseTo(1200, -1);
});

describe('chaos figures in the documentation', () => {
  const result = (id: string, figures: Record<string, string | number>) => ({
    id,
    name: id,
    seconds: 2,
    outcome: { kind: 'finding', finding: { figures, broken: [] } } as const,
  });
  const page = 'before\n<!-- figures: written by scripts/chaos -->\n<!-- end of figures -->\nafter\n';

  test('chaos figures are written between the markers, and those of experiments that did not run are kept', () => {
    const first = updatePage(page, [result('kills', { lost: 0 }), result('soak', { slope: 1 })], '2031-01-01', './run');
    expect(first).toContain('| `kills` | lost: 0<br>took: 2 s | held | 2031-01-01, `./run` |');
    const second = updatePage(first, [result('soak', { slope: 2 })], '2031-01-02', './run');
    expect(second).toContain('| `kills` | lost: 0<br>');
    expect(second).toContain('| `soak` | slope: 2<br>');
    expect(second).not.toContain('slope: 1');
    expect(second).toMatch(/^before\n[\s\S]+\nafter\n$/);
    expect(() => updatePage('nothing', [], '2031-01-01', '')).toThrow(/markers/);
  });

  test('chaos figures stay unchanged for an experiment that was left out, which counts as skipped', () => {
    const first = updatePage(page, [result('kills', { lost: 0 })], '2031-01-01', './run');
    const skipped = result('kills', { skipped: 'needs root' });
    expect(updatePage(first, [skipped], '2031-01-02', './run')).toBe(first);
    expect(resultsTable([skipped])).toMatch(/kills +skipped: needs root +skipped$/m);
    expect(summaryLine([skipped, result('soak', { slope: 1 })], false)).toBe('1 passed, 0 failed, 1 skipped');
  });

  test('chaos figures have one line each in the terminal', () => {
    expect(
      resultsTable([result('kills', { 'grants lost': 0, kills: 200 })])
        .split('\n')
        .slice(2),
    ).toEqual(['kills       grants lost: 0  held', '            kills: 200', '            took: 2 s']);
  });
});
