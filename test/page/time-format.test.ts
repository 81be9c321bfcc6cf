import { expect, it } from 'vitest';
import { formatDateTime, formatRelativeTime } from '../../src/page/browser/time-format.ts';

it('times are formatted in each language, with and without a time zone', () => {
  expect([formatRelativeTime('en', -300_000), formatRelativeTime('de', -300_000)]).toEqual([
    '5 minutes ago',
    'vor 5 Minuten',
  ]);
  const formats = ['en', 'de'].flatMap((language) => [true, false].map((zoned) => formatDateTime(language, 0, zoned)));
  expect(new Set(formats).size).toBe(4);
});
