import { readFileSync } from 'node:fs';
import { uptime } from 'node:os';
import type { Clock, Timers } from '../core/clock.ts';

/** Where the time is read, each in ms. */
export interface TimeSources {
  /** Since the boot, suspended time too. */
  readonly uptime: () => number;
  /** Since 1970. */
  readonly wall: () => number;
  /** On the clock that timers go by, which stands still while the machine is suspended. */
  readonly monotonic: () => number;
}

const SYSTEM_TIME_SOURCES: TimeSources = {
  uptime: () => uptime() * 1000,
  wall: Date.now,
  monotonic: () => performance.now(),
};

/** Milliseconds by which the wall clock leaves the timers' clock where the machine was suspended, or its clock set. */
const SUSPEND_TOLERANCE = 10;
/** So often the uptime is read in any case, in ms. */
const UPTIME_INTERVAL = 1000;

/**
 * The machine's clocks. `os.uptime()` counts suspended time, which `performance.now()` does not; but it reads a file, which takes a
 * hundred times as long. So it is reckoned from that, and read anew where the wall clock has gone another way: the time that the
 * machine has slept is added to both.
 * @param boot identifies this boot of the machine: see {@link bootId}
 */
export function systemClock(
  boot: string = bootId(),
  { uptime, wall, monotonic: timers }: TimeSources = SYSTEM_TIME_SOURCES,
): Clock {
  let ahead = Number.NEGATIVE_INFINITY;
  let apart = 0;
  let read = Number.NEGATIVE_INFINITY;
  return {
    now() {
      const [running, time] = [timers(), wall()];
      if (running - read >= UPTIME_INTERVAL || Math.abs(time - running - apart) >= SUSPEND_TOLERANCE) {
        [read, apart] = [running, time - running];
        // Hundredths of a second are told, cut off: the most that it ever was ahead is nearest, and it never goes back.
        ahead = Math.max(ahead, uptime() - running);
      }
      return { boot, uptime: Math.round(running + ahead), wall: time };
    },
  };
}

/** The machine's wall clock alone, in milliseconds since 1970: reading the uptime takes a hundred times as long. */
export const wallClock = { now: () => ({ wall: Date.now() }) };

/** Milliseconds on the clock that timers go by: it stands still while the machine is suspended. */
export function monotonicNow(): number {
  return performance.now();
}

/**
 * This boot's id: what the unit file passes (`%b`), because a sandboxed service can't read the kernel's own.
 * @throws Error where neither is to be had
 */
function bootId(env: NodeJS.ProcessEnv = process.env): string {
  const given = env['LATCHKEY_BOOT_ID'];
  const id = given ?? readFileSync('/proc/sys/kernel/random/boot_id', 'utf8');
  return id.replaceAll('-', '').trim();
}

/** The event loop's timers; without a delay, its next round: a timer lets a millisecond pass at least. */
export const systemTimers: Timers = {
  after(delay, run) {
    if (delay <= 0) {
      const immediate = setImmediate(run);
      return () => clearImmediate(immediate);
    }
    const timer = setTimeout(run, delay);
    return () => clearTimeout(timer);
  },
  sleep(delay, signal) {
    const { promise, resolve } = Promise.withResolvers<void>();
    if (signal?.aborted) return Promise.resolve();
    const timer = setTimeout(done, delay);
    function done() {
      clearTimeout(timer);
      signal?.removeEventListener('abort', done);
      resolve();
    }
    signal?.addEventListener('abort', done, { once: true });
    return promise;
  },
};

/** Resolves with `work`, and no later than after `timeout` ms. */
export async function withTimeout(work: Promise<unknown>, timeout: number, timers: Timers): Promise<void> {
  const done = new AbortController();
  await Promise.race([work.finally(() => done.abort()), timers.sleep(timeout, done.signal)]);
}
