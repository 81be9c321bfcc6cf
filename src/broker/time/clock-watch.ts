import type { Instant } from '../../core/clock.ts';
import type { Environment } from '../environment.ts';

/** What a watch on the clock looks at, and whom it tells. */
export interface ClockWatchOptions {
  readonly environment: Pick<Environment, 'clock' | 'timers' | 'log'>;
  /** Whether NTP vouches for the wall clock; asked until it does. It does not reject. */
  readonly isSynchronized: (now: Instant, wasSet: boolean) => Promise<boolean>;
  /** The wall clock was set. */
  readonly onSet: () => void;
  /** NTP vouches for the wall clock. Called once. */
  readonly onSynchronized: () => void;
}

/** How often the clock is looked at, in ms. */
const CHECK_INTERVAL_MS = 5000;
/** The wall clock may run apart from the boot clock by this between two looks, in ms, without having been set. */
const MAX_DRIFT_MS = 2000;

/** Notices that the wall clock was set, and that NTP has begun to vouch for it. */
export function watchClock({
  environment,
  isSynchronized: synchronized,
  onSet,
  onSynchronized,
}: ClockWatchOptions): Disposable {
  const { clock, timers, log } = environment;
  let ended = false;
  let vouched = false;
  let offset = offsetOf(clock.now());
  let disarm: () => void = () => undefined;

  async function look(): Promise<void> {
    const now = clock.now();
    const by = offsetOf(now) - offset;
    offset += by;
    const wasSet = Math.abs(by) > MAX_DRIFT_MS;
    if (wasSet) {
      log.warn('clock_set', { step: Math.round(by / 1000), hub_time: new Date(now.wall).toISOString() });
      onSet();
    }
    if (!vouched && (await synchronized(now, wasSet)) && !ended) {
      vouched = true;
      onSynchronized();
    }
    if (!ended) disarm = timers.after(CHECK_INTERVAL_MS, () => void look());
  }
  void look();
  return {
    [Symbol.dispose]() {
      ended = true;
      disarm();
    },
  };
}

/** When this boot began, by the wall clock as it is. */
function offsetOf({ wall, uptime }: Instant): number {
  return wall - uptime;
}
