import { InvalidArgumentError } from 'commander';
import { expect, test } from 'vitest';
import {
  durationParser,
  formatTimeSince,
  formatTimeUntil,
  parseDurationSeconds,
} from '../../../src/cli/terminal/duration.ts';
import { formatDuration } from '../../../src/core/clock.ts';

test.each([
  ['0.5s', 0.5],
  ['10m', 600],
])('the duration %s is parsed as %d seconds', (text, seconds) => {
  expect(parseDurationSeconds(text)).toBe(seconds);
});

test.each(['', '0s', '-1', '1w', '1e3', '99999999999'])('%j is not accepted as a duration', (text) => {
  expect(() => parseDurationSeconds(text)).toThrow(InvalidArgumentError);
});

test('a duration with bounds is parsed to whole seconds within them', () => {
  const read = durationParser('1s', '24h');
  expect([read('0.2s'), read('1'), read('90m'), read('1d')]).toEqual([1, 1, 5400, 86_400]);
  expect(() => read('86401')).toThrow('Must be 1s to 24h.');
});

test.each([
  [0.4, '0 s'],
  [119.9, '119 s'],
  [120, '2 min'],
  [7200, '2 h'],
  [172_800, '2 d'],
])('%d seconds are shown as %s', (seconds, text) => {
  expect(formatDuration(seconds)).toBe(text);
});

test('a wait that is a promise is rounded up', () => {
  expect([119, 121, 7201].map((seconds) => formatDuration(seconds, Math.ceil))).toEqual(['119 s', '3 min', '3 h']);
});

test('a time that is due, unknown or never is shown in words', () => {
  expect([formatTimeUntil(null), formatTimeUntil(0), formatTimeUntil(-3), formatTimeUntil(61)]).toEqual([
    '–',
    'now',
    'now',
    'in 61 s',
  ]);
  const now = Date.parse('2026-01-01T12:00:00Z');
  expect(formatTimeSince(null, now)).toBe('–');
  expect(formatTimeSince('2026-01-01T09:00:00Z', now)).toBe('3 h ago');
  expect(formatTimeSince('2026-01-01T12:00:05Z', now)).toBe('just now');
  // The clock was set back since.
  expect(formatTimeSince('2026-01-02T14:00:00Z', now)).toBe('2026-01-02T14:00:00Z');
});
