import { InvalidArgumentError } from 'commander';

const SECONDS_PER_UNIT: Readonly<Record<string, number>> = { '': 1, s: 1, m: 60, h: 3600, d: 86_400 };

/**
 * Reads a duration as it is written on the command line: seconds, or a number with a unit (`45s`, `10m`, `2h`, `1d`).
 * @returns seconds, above 0
 * @throws InvalidArgumentError
 */
export function parseDurationSeconds(text: string): number {
  const [, number = '', unit = ''] = /^(\d{1,9}(?:\.\d{1,3})?)([smhd]?)$/.exec(text) ?? [];
  const seconds = Number(number) * (SECONDS_PER_UNIT[unit] ?? 0);
  if (seconds > 0) return seconds;
  throw new InvalidArgumentError('Allowed are seconds, or a number with s, m, h or d, such as 45s or 10m.');
}

/**
 * Reads a duration with bounds, as {@link parseDurationSeconds}.
 * @param least as it is written on the command line, such as `1s`; `most` likewise
 * @returns a function that gives whole seconds, rounded up, and throws InvalidArgumentError
 */
export function durationParser(least: string, most: string): (text: string) => number {
  const [shortest, longest] = [parseDurationSeconds(least), parseDurationSeconds(most)];
  return (text) => {
    const seconds = Math.ceil(parseDurationSeconds(text));
    if (seconds >= shortest && seconds <= longest) return seconds;
    throw new InvalidArgumentError(`Allowed is ${least} to ${most}.`);
  };
}

/** A duration for people, in its largest fitting unit: `45 s`, `12 min`, `3 h`, `2 d`. */
export function formatDuration(seconds: number): string {
  if (seconds < 120) return `${Math.max(0, Math.floor(seconds))} s`;
  if (seconds < 2 * 3600) return `${Math.floor(seconds / 60)} min`;
  if (seconds < 2 * 86_400) return `${Math.floor(seconds / 3600)} h`;
  return `${Math.floor(seconds / 86_400)} d`;
}

/** `in 12 min`; `now` where it is due; `–` where nothing is known. */
export function formatTimeUntil(seconds: number | null): string {
  if (seconds === null) return '–';
  return seconds >= 1 ? `in ${formatDuration(seconds)}` : 'now';
}

/**
 * `3 h ago`; `–` for never.
 * @param instant RFC 3339
 * @param now milliseconds since 1970
 */
export function formatTimeSince(instant: string | null, now: number): string {
  if (instant === null) return '–';
  const seconds = (now - Date.parse(instant)) / 1000;
  return seconds >= 1 ? `${formatDuration(seconds)} ago` : 'just now';
}

/**
 * Reads a whole number of the command line, 0 or more.
 * @throws InvalidArgumentError
 */
export function parseNonNegativeInteger(text: string): number {
  if (/^\d{1,9}$/.test(text)) return Number(text);
  throw new InvalidArgumentError('Allowed is a whole number.');
}
