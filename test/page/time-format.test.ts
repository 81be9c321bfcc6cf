import { expect, it } from 'vitest';
import { formatDateTime, formatRelativeTime } from '../../src/page/browser/time-format.ts';

const TIMES = 300;

/** The time of repeated work, in ms: the least of some rounds, because the machine may be busy. */
function shortestTime(work: () => void): number {
  const rounds = Array.from({ length: 20 }, () => {
    const before = performance.now();
    for (let time = 0; time < TIMES; time++) work();
    return performance.now() - before;
  });
  return Math.min(...rounds);
}

it('the times of a page are formatted without creating a format for each', () => {
  const creation = shortestTime(() => new Intl.RelativeTimeFormat('de', { numeric: 'auto' }));
  expect(shortestTime(() => formatRelativeTime('de', -300_000))).toBeLessThan(creation / 2);
  expect(shortestTime(() => formatDateTime('de', 0, true))).toBeLessThan(creation / 2);
});

it('times are formatted in each language, with and without a time zone', () => {
  expect([formatRelativeTime('en', -300_000), formatRelativeTime('de', -300_000)]).toEqual([
    '5 minutes ago',
    'vor 5 Minuten',
  ]);
  const formats = ['en', 'de'].flatMap((language) => [true, false].map((zoned) => formatDateTime(language, 0, zoned)));
  expect(new Set(formats).size).toBe(4);
});
