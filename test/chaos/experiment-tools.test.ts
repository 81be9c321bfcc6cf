import { expect, test } from 'vitest';
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
