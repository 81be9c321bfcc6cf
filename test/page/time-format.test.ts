import { expect, it } from 'vitest';
import { formatDateTime, formatRelativeTime } from '../../src/page/browser/time-format.ts';

it('a time of less than a minute is told in seconds, before and after', () => {
  expect([28_000, 999, -59_999].map((ms) => formatRelativeTime('en', ms))).toEqual([
    'in 28 seconds',
    'now',
    '59 seconds ago',
  ]);
});

it('times are formatted in each language, with and without a time zone', () => {
  expect([formatRelativeTime('en', -300_000), formatRelativeTime('de', -300_000)]).toEqual([
    '5 minutes ago',
    'vor 5 Minuten',
  ]);
  const formats = ['en', 'de'].flatMap((language) => [true, false].map((zoned) => formatDateTime(language, 0, zoned)));
  expect(new Set(formats).size).toBe(4);
});
