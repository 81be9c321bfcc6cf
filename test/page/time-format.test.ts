import { expect, it } from 'vitest';
import { formatDateTime, formatRelativeTime } from '../../src/page/browser/time-format.ts';

const TIMES = 300;

/** The processor time of repeated work, in µs: the least of some rounds. */
function cpuTime(work: () => void): number {
  const rounds = Array.from({ length: 5 }, () => {
    const before = process.threadCpuUsage();
    for (let time = 0; time < TIMES; time++) work();
    const { user, system } = process.threadCpuUsage(before);
    return user + system;
  });
  return Math.min(...rounds);
}

it('the times of a page are formatted without creating a format for each', () => {
  const creation = cpuTime(() => new Intl.RelativeTimeFormat('de', { numeric: 'auto' }));
  expect(cpuTime(() => formatRelativeTime('de', -300_000))).toBeLessThan(creation / 2);
  expect(cpuTime(() => formatDateTime('de', 0, true))).toBeLessThan(creation / 2);
});

it('times are formatted in each language, with and without a time zone', () => {
  expect([formatRelativeTime('en', -300_000), formatRelativeTime('de', -300_000)]).toEqual([
    '5 minutes ago',
    'vor 5 Minuten',
  ]);
  const formats = ['en', 'de'].flatMap((language) => [true, false].map((zoned) => formatDateTime(language, 0, zoned)));
  expect(new Set(formats).size).toBe(4);
});
