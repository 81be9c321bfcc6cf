/**
 * A moment on both of the hub's clocks. Ages are measured on the boot clock, and only between instants of the same
 * boot: the wall clock of a Raspberry Pi may be hours wrong, or jump by years while it runs.
 */
export interface Instant {
  /** The id of the boot that `uptime` counts from; uptimes of different boots can't be compared. */
  readonly boot: string;
  /** Milliseconds since the boot, including suspended time. */
  readonly uptime: number;
  /** Milliseconds since 1970 by the wall clock, right or wrong. */
  readonly wall: number;
}

/** The hub's clocks. */
export interface Clock {
  now(): Instant;
}

/** Timers. Delays are milliseconds on a clock that may stop while the machine is suspended. */
export interface Timers {
  /** Calls `run` once after `delay`. Returns a function that cancels this. */
  after(delay: number, run: () => void): () => void;
  /** Resolves after `delay`, or as soon as `signal` is aborted; the caller checks the signal. */
  sleep(delay: number, signal?: AbortSignal): Promise<void>;
}

/**
 * The longest delay of a timer, in ms: timers stop while the machine is suspended, so the time is checked again after
 * it.
 */
export const MAX_TIMER_DELAY = 60_000;

/** A clock outside of these times is wrong, so its time is ignored. In ms since 1970. */
export const MIN_PLAUSIBLE_TIME = Date.UTC(2025, 0, 1);
export const MAX_PLAUSIBLE_TIME = Date.UTC(2100, 0, 1);

/** Milliseconds from `earlier` to `later`; null if they are of different boots. */
export function elapsed(earlier: Instant, later: Instant): number | null {
  return earlier.boot === later.boot ? later.uptime - earlier.uptime : null;
}

/** The true time, which a portal's `Date` or NTP confirmed in this boot: at the instant `at`, it was `wall`. */
export interface ConfirmedTime {
  /** Milliseconds since 1970. */
  readonly wall: number;
  readonly at: Instant;
}

/** The true time at `now`, in ms since 1970; null if nothing has confirmed it in this boot. */
export function confirmedTimeAt(confirmed: ConfirmedTime | null, now: Instant): number | null {
  const since = confirmed === null ? null : elapsed(confirmed.at, now);
  return confirmed === null || since === null ? null : confirmed.wall + since;
}

/** The true time at `now` by each reading of this boot, in ms since 1970. */
export function timesAt(readings: readonly ConfirmedTime[], now: Instant): number[] {
  return readings.map((reading) => confirmedTimeAt(reading, now)).filter((time) => time !== null);
}

/**
 * The offset from the boot clock to the wall clock, in ms: by the confirmed time, or else by the hub's clock, right or
 * wrong.
 */
export function wallOffset(confirmed: ConfirmedTime | null, now: Instant): number {
  return confirmed === null ? now.wall - now.uptime : confirmed.wall - confirmed.at.uptime;
}

/** The largest time that a `Date` can have, in ms since 1970: in the year 275760. */
const MAX_TIME = 8.64e15;

/**
 * A time in the format of RFC 3339, in UTC and whole seconds, such as `2026-11-22T07:14:05Z`.
 * @param wall ms since 1970; never an error, because a stored time may be anything
 */
export function rfc3339(wall: number): string {
  return new Date(Math.max(-MAX_TIME, Math.min(wall, MAX_TIME))).toISOString().replace(/\.\d+Z$/, 'Z');
}

/** The date of a time in UTC, in the format of RFC 3339, such as `2026-11-22`. @param wall ms since 1970 */
export function rfc3339Day(wall: number): string {
  return new Date(wall).toISOString().slice(0, 10);
}

/** An hour and a day, in ms. */
export const HOUR = 3_600_000;
export const DAY = 24 * HOUR;

/** The day of a time in UTC, as the number of days since 1970-01-01. @param wall ms since 1970 */
export function utcDay(wall: number): number {
  return Math.floor(wall / DAY);
}

/** Rounds a difference of two clocks to whole minutes: a time that it is added to does not change with each call. */
export function wholeMinutes(ms: number): number {
  return 60_000 * Math.round(ms / 60_000);
}

/**
 * When an instant was, by the hub's current clock, which may have been set since; in ms since 1970. As it was recorded, if
 * that was in another boot.
 */
export function wallTimeOf({ boot, uptime, wall }: Instant, now: Instant): number {
  return boot === now.boot ? wall + wholeMinutes(now.wall - now.uptime - (wall - uptime)) : wall;
}

/** A duration for people, in its largest fitting unit: `45 s`, `12 min`, `3 h`, `2 d`. @param round `Math.ceil` for a promise */
export function formatDuration(seconds: number, round: (count: number) => number = Math.floor): string {
  if (seconds < 120) return `${Math.max(0, round(seconds))} s`;
  if (seconds < 2 * 3600) return `${round(seconds / 60)} min`;
  if (seconds < 2 * 86_400) return `${round(seconds / 3600)} h`;
  return `${round(seconds / 86_400)} d`;
}

/** How far the hub's clock may be off a portal's before a check warns, and before it fails, in ms. */
export const CLOCK_WARNING_OFFSET = 10_000;
export const CLOCK_FAILURE_OFFSET = 300_000;

/** Why a portal's certificate was rejected, if its dates were the reason. */
export type CertificateDateError = 'not_yet_valid' | 'expired';

/** A clock error below this, in ms, is not the reason why a certificate is rejected. */
const TOLERATED_SKEW = 300_000;

/**
 * Why a portal's certificate was rejected, for people, if the hub's own clock may be the reason: nothing has confirmed
 * it, or it is known to be wrong. Null if the clock is right, so that the certificate itself must be wrong.
 */
export function clockFaultMessage(
  dates: CertificateDateError,
  now: Instant,
  confirmed: ConfirmedTime | null,
): string | null {
  const time = confirmedTimeAt(confirmed, now);
  if (time !== null && Math.abs(time - now.wall) < TOLERATED_SKEW) return null;
  const confirmation = time === null ? 'and nothing has confirmed it yet' : `but it is ${rfc3339(time)}`;
  const error = dates === 'expired' ? 'has expired' : 'is not valid yet';
  return `The hub's clock says ${rfc3339(now.wall)}, ${confirmation}: by that clock the portal's certificate ${error}. The hub continues automatically as soon as the clock is set`;
}
