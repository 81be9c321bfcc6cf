import { readFileSync } from 'node:fs';
import { uptime } from 'node:os';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Clock, Timers } from '../core/clock.ts';

/** The clocks of the machine, in ms. */
export interface TimeSources {
  /** Time since the boot, including suspended time. */
  readonly uptime: () => number;
  /** Time since 1970. */
  readonly wall: () => number;
  /** The clock of the timers, which stops while the machine is suspended. */
  readonly monotonic: () => number;
}

const SYSTEM_TIME_SOURCES: TimeSources = {
  uptime: () => uptime() * 1000,
  wall: Date.now,
  monotonic: () => performance.now(),
};

/**
 * If the wall clock and the timers' clock diverge by this much, in ms, the machine was suspended or its clock was set.
 */
const SUSPEND_TOLERANCE = 10;
/** The uptime is read at least this often, in ms. */
const UPTIME_INTERVAL = 1000;

/**
 * The machine's clocks. `os.uptime()` includes suspended time and `performance.now()` does not, but the former reads a
 * file and takes a hundred times as long. So the uptime is computed from `performance.now()`, and read again every
 * second and whenever the wall clock has diverged from it: a suspension advances the uptime and the wall clock alike.
 * @param boot identifies this boot of the machine: see {@link bootId}
 */
export function systemClock(
  boot: string = bootId(),
  { uptime, wall, monotonic }: TimeSources = SYSTEM_TIME_SOURCES,
): Clock {
  let uptimeOffset = Number.NEGATIVE_INFINITY;
  let wallOffset = 0;
  let lastRead = Number.NEGATIVE_INFINITY;
  return {
    now() {
      const [current, time] = [monotonic(), wall()];
      if (current - lastRead >= UPTIME_INTERVAL || Math.abs(time - current - wallOffset) >= SUSPEND_TOLERANCE) {
        [lastRead, wallOffset] = [current, time - current];
        // The uptime is truncated to hundredths of a second, so the largest offset is the most exact. It also never
        // goes back.
        uptimeOffset = Math.max(uptimeOffset, uptime() - current);
      }
      return { boot, uptime: Math.round(current + uptimeOffset), wall: time };
    },
  };
}

/** Only the machine's wall clock, in ms since 1970, for callers that do not need the uptime. */
export const wallClock = { now: () => ({ wall: Date.now() }) };

/** Milliseconds on the clock of the timers, which stops while the machine is suspended. */
export function monotonicNow(): number {
  return performance.now();
}

/**
 * The id of this boot, from the unit file (`%b`), because a sandboxed service can't read the kernel's file, or from
 * that file.
 * @throws Error if there is neither
 */
function bootId(env: NodeJS.ProcessEnv = process.env): string {
  const id = env['LATCHKEY_BOOT_ID'] ?? readFileSync('/proc/sys/kernel/random/boot_id', 'utf8');
  return id.replaceAll('-', '').trim();
}

/**
 * The timers of the event loop. Without a delay `setImmediate` is used, because a timer takes at least a millisecond.
 */
export const systemTimers: Timers = {
  after(delay, run) {
    if (delay <= 0) {
      const immediate = setImmediate(run);
      return () => clearImmediate(immediate);
    }
    const timer = setTimeout(run, delay);
    return () => clearTimeout(timer);
  },
  // It rejects only if it is aborted.
  sleep: (delay, signal) => sleep(delay, undefined, { signal }).catch(() => undefined),
};

/**
 * Waits for `work`, but no longer than `timeout` ms, which may be over. Rejects if `work` rejects before that.
 * @returns what `work` has resolved with; undefined if it takes longer
 */
export async function withTimeout<Result>(
  work: Promise<Result>,
  timeout: number,
  timers: Timers,
): Promise<Result | undefined> {
  const done = new AbortController();
  try {
    return await Promise.race([work, timers.sleep(Math.max(0, timeout), done.signal).then(() => undefined)]);
  } finally {
    done.abort();
  }
}

/** In ms. */
const UNITS: Readonly<Record<string, number>> = { s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 };

/** Parses a duration such as "5s", "15m", "2h" or "1d". @returns milliseconds; null if the text is no duration */
export function parseDuration(text: string): number | null {
  const [, digits, letter = ''] = /^(\d{1,6})([smhd])$/.exec(text) ?? [];
  const unit = UNITS[letter];
  return unit === undefined ? null : Number(digits) * unit;
}
