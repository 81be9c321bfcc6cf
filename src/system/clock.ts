import { readFileSync } from 'node:fs';
import { uptime } from 'node:os';
import type { Clock, Timers } from '../core/clock.ts';

/**
 * The machine's clocks. `os.uptime()` counts suspended time, which `performance.now()` does not.
 * @param boot identifies this boot of the machine: see {@link bootId}
 */
export function systemClock(boot: string = bootId()): Clock {
  return { now: () => ({ boot, uptime: Math.round(uptime() * 1000), wall: Date.now() }) };
}

/** The machine's wall clock alone, in milliseconds since 1970: reading the uptime takes a hundred times as long. */
export const wallClock = { now: () => ({ wall: Date.now() }) };

/** Milliseconds on the clock that timers go by: it stands still while the machine is suspended. */
export function timerClock(): number {
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

/** The event loop's timers. */
export const systemTimers: Timers = {
  after(delay, run) {
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
