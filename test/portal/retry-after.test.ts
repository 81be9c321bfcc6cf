import { expect, test } from 'vitest';
import { parseRetryAfter } from '../../src/portal/retry-after.ts';

const portalTime = Date.UTC(2031, 4, 5, 6, 7, 8);

test.each([
  ['0', 0],
  ['120', 120_000],
  [' 120 ', 120_000],
  ['999999999', 999_999_999_000],
])('Retry-After: %s is a number of seconds', (header, ms) => {
  expect(parseRetryAfter(header, portalTime)).toBe(ms);
  expect(parseRetryAfter(header, null)).toBe(ms);
});

test('a date is held against the Date of the same answer, because the clock of the hub may be wrong', () => {
  expect(parseRetryAfter('Mon, 05 May 2031 06:09:08 GMT', portalTime)).toBe(120_000);
  expect(parseRetryAfter('Mon, 05 May 2031 06:00:00 GMT', portalTime)).toBe(0);
  expect(parseRetryAfter('Mon, 05 May 2031 06:09:08 GMT', null)).toBeNull();
});

test.each(['', ' ', 'soon', '-5', '1.5', '1e9', '12345678901234567890', '0x10', '5 minutes', 'NaN', 'undefined', '-1'])(
  'Retry-After: %j makes no sense, and counts as absent',
  (header) => {
    expect(parseRetryAfter(header, portalTime)).toBeNull();
  },
);
