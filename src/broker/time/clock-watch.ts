import type { Instant } from '../../core/clock.ts';
import type { Environment } from '../ports.ts';

/** What a clock watch needs, and its listeners. */
interface ClockWatchOptions {
  readonly environment: Pick<Environment, 'clock' | 'timers' | 'log'>;
  /** Whether NTP has synchronized the wall clock; called until it has. It does not reject. */
  readonly isSynchronized: (now: Instant, wasSet: boolean) => Promise<boolean>;
  /** The wall clock was set. */
  readonly onSet: () => void;
  /** NTP has synchronized the wall clock. Called once. */
  readonly onSynchronized: () => void;
}

/** How often the clock is checked, in ms. */
const CHECK_INTERVAL_MS = 5000;
/** The wall clock counts as set if it moved against the boot clock by more than this between two checks, in ms. */
const MAX_DRIFT_MS = 2000;

/** Detects that the wall clock was set, and that NTP has synchronized it. */
export function watchClock({ environment, isSynchronized, onSet, onSynchronized }: ClockWatchOptions): Disposable {
  const { clock, timers, log } = environment;
  let ended = false;
  let isConfirmed = false;
  let bootTime = bootTimeOf(clock.now());
  let disarm: () => void = () => undefined;

  async function check(): Promise<void> {
    const now = clock.now();
    const step = bootTimeOf(now) - bootTime;
    bootTime += step;
    const wasSet = Math.abs(step) > MAX_DRIFT_MS;
    if (wasSet) {
      log.warn('clock_set', { step: Math.round(step / 1000), hub_time: new Date(now.wall).toISOString() });
      onSet();
    }
    if (!isConfirmed && (await isSynchronized(now, wasSet)) && !ended) {
      isConfirmed = true;
      onSynchronized();
    }
    if (!ended) disarm = timers.after(CHECK_INTERVAL_MS, () => void check());
  }
  void check();
  return {
    [Symbol.dispose]() {
      ended = true;
      disarm();
    },
  };
}

/** The start of this boot by the current wall clock, in ms since 1970. */
function bootTimeOf({ wall, uptime }: Instant): number {
  return wall - uptime;
}
