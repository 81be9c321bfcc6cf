/**
 * A moment on both of the hub's clocks. Ages are measured on the boot clock, and only between instants of one boot:
 * the wall clock of a Pi may be hours wrong, or jump by years while it runs.
 */
export interface Instant {
  /** The boot that `uptime` counts from; two boots' uptimes can't be compared. */
  readonly boot: string;
  /** Milliseconds since the boot, counting suspended time. */
  readonly uptime: number;
  /** Milliseconds since 1970 by the wall clock, right or wrong. */
  readonly wall: number;
}

/** Tells the time. */
export interface Clock {
  now(): Instant;
}

/** Runs things later. Delays are milliseconds on a clock that may stop while the machine is suspended. */
export interface Timers {
  /** Calls `run` once after `delay`; the function it returns takes that back. */
  after(delay: number, run: () => void): () => void;
  /** Resolves after `delay`, or as soon as `signal` is aborted: the caller looks at the signal. */
  sleep(delay: number, signal?: AbortSignal): Promise<void>;
}

/** The longest that any timer runs before the time is looked at again: machines suspend, and timers stop with them. */
export const MAX_TIMER_DELAY = 60_000;

/** Milliseconds from `earlier` to `later`, or null where they belong to two boots. */
export function elapsed(earlier: Instant, later: Instant): number | null {
  return earlier.boot === later.boot ? later.uptime - earlier.uptime : null;
}

/** The true time, as the portal's `Date` or NTP has told it in this boot: `wall` was right at `at`. */
export interface ConfirmedTime {
  /** Milliseconds since 1970. */
  readonly wall: number;
  readonly at: Instant;
}

/** The true time at `now`, in ms since 1970; null where nothing has told it in this boot. */
export function confirmedTimeAt(confirmed: ConfirmedTime | null, now: Instant): number | null {
  const since = confirmed === null ? null : elapsed(confirmed.at, now);
  return confirmed === null || since === null ? null : confirmed.wall + since;
}

/** An instant as RFC 3339 has it, in UTC and whole seconds, such as `2026-11-22T07:14:05Z`. @param wall ms since 1970 */
export function rfc3339(wall: number): string {
  return new Date(wall).toISOString().replace(/\.\d+Z$/, 'Z');
}

/** The day of an instant in UTC, as RFC 3339 has it, such as `2026-11-22`. @param wall ms since 1970 */
export function rfc3339Day(wall: number): string {
  return new Date(wall).toISOString().slice(0, 10);
}

/** What a portal's certificate was refused for, where its dates were the reason. */
export type CertificateDateError = 'not_yet_valid' | 'expired';

/** A clock that is off by less than this, in ms, is not what a certificate is refused for. */
const TOLERATED_SKEW = 300_000;

/**
 * Why a portal's certificate was refused, in words for people, where the hub's own clock may be the reason: nothing has
 * confirmed it, or it is known to be wrong. Null where the clock is right, and the certificate itself must be at fault.
 */
export function clockFaultMessage(
  dates: CertificateDateError,
  now: Instant,
  confirmed: ConfirmedTime | null,
): string | null {
  const time = confirmedTimeAt(confirmed, now);
  if (time !== null && Math.abs(time - now.wall) < TOLERATED_SKEW) return null;
  const known = time === null ? 'and nothing has confirmed it yet' : `but it is ${rfc3339(time)}`;
  const refused = dates === 'expired' ? 'has expired' : 'is not valid yet';
  return `The hub's clock says ${rfc3339(now.wall)}, ${known}: by it the portal's certificate ${refused}. The hub goes on by itself as soon as the clock is set`;
}
