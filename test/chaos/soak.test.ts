import { expect, test } from 'vitest';
import { shortForm } from './experiment.ts';
import { experiment } from './soak.experiment.ts';
import { slope, usualGrowth } from './soak-gauges.ts';

test('under load and every fault nothing grows, and every token is the right one', async () => {
  const { figures, broken } = await shortForm(experiment);
  expect(broken).toEqual([]);
  const count = (name: string) => Number.parseInt(String(figures[name]), 10);
  expect(count('hand-outs asked for')).toBeGreaterThan(1000);
  expect(count('tokens handed out')).toBeGreaterThan(500);
  for (const kind of ['status', 'commit_then_drop', 'tls_failure']) {
    expect(figures['faults met']).toMatch(new RegExp(`${kind} [1-9]`));
  }
});

test('a leak is seen beside bursts and noise, and a burst alone is none', () => {
  const samples = (value: (second: number) => number) =>
    Array.from({ length: 300 }, (_, second) => ({ minutes: second / 60, value: value(second) }));
  const noise = (second: number) => ((second * 7919) % 13) - 6;
  const burst = (second: number) => (second > 100 ? 9000 : 0);
  expect(Math.abs(slope(samples((second) => 30_000 + noise(second))))).toBeLessThan(5);
  expect(slope(samples((second) => 30_000 + second * 10 + noise(second)))).toBeCloseTo(600, -1);
  expect(Math.abs(usualGrowth(samples((second) => 150_000 + burst(second) + noise(second))))).toBeLessThan(50);
  expect(usualGrowth(samples((second) => 150_000 + burst(second) + second * 20))).toBeCloseTo(1200, -1);
});
