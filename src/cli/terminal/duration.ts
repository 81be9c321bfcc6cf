import { InvalidArgumentError } from 'commander';
import { formatDuration } from '../../core/clock.ts';

const SECONDS_PER_UNIT: Readonly<Record<string, number>> = { '': 1, s: 1, m: 60, h: 3600, d: 86_400 };

/**
 * Parses a duration of the command line: seconds, or a number with a unit (`45s`, `10m`, `2h`, `1d`).
 * @returns seconds, above 0
 * @throws InvalidArgumentError
 */
export function parseDurationSeconds(text: string): number {
  const [, number = '', unit = ''] = /^(\d{1,9}(?:\.\d{1,3})?)([smhd]?)$/.exec(text) ?? [];
  const seconds = Number(number) * (SECONDS_PER_UNIT[unit] ?? 0);
  if (seconds > 0) return seconds;
  throw new InvalidArgumentError('Must be a number of seconds, or a number with s, m, h or d, such as 45s or 10m.');
}

/**
 * Creates a parser of durations with limits; see {@link parseDurationSeconds} for their form.
 * @param min the shortest duration, as on the command line, such as `1s`
 * @param max the longest duration, in the same form
 * @returns a function that returns whole seconds, rounded up, and throws InvalidArgumentError
 */
export function durationParser(min: string, max: string): (text: string) => number {
  const [minSeconds, maxSeconds] = [parseDurationSeconds(min), parseDurationSeconds(max)];
  return (text) => {
    const seconds = Math.ceil(parseDurationSeconds(text));
    if (seconds >= minSeconds && seconds <= maxSeconds) return seconds;
    throw new InvalidArgumentError(`Must be ${min} to ${max}.`);
  };
}

/**
 * `in 12 min`; `–` if the time is unknown.
 * @param reached the text when it has come
 */
export function formatTimeUntil(seconds: number | null, reached = 'now'): string {
  if (seconds === null) return '–';
  return seconds >= 1 ? `in ${formatDuration(seconds)}` : reached;
}

/**
 * `3 h ago`; `–` for never. The instant itself if it lies more than a minute ahead: the clock was set back since, or is
 * slow.
 * @param instant RFC 3339
 * @param now milliseconds since 1970
 */
export function formatTimeSince(instant: string | null, now: number): string {
  if (instant === null) return '–';
  const seconds = (now - Date.parse(instant)) / 1000;
  if (seconds < -60) return instant;
  return seconds >= 1 ? `${formatDuration(seconds)} ago` : 'just now';
}

/**
 * Parses a whole number of the command line, 0 or more.
 * @throws InvalidArgumentError
 */
export function parseNonNegativeInteger(text: string): number {
  if (/^\d{1,9}$/.test(text)) return Number(text);
  throw new InvalidArgumentError('Must be a whole number.');
}
