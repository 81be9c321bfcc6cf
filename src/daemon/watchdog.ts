import { MAX_TIMER_DELAY, type Timers } from '../core/clock.ts';
import type { Log } from '../core/log.ts';
import type { SystemdNotifier } from '../system/systemd-notifier.ts';

/** A timer that fires later than this is logged, in ms: the event loop was blocked. */
const BLOCKED_THRESHOLD = 5000;
/** A task that is due for longer than this, in ms on the boot clock, is overdue. */
const OVERDUE_THRESHOLD = 5000;
/**
 * How long a task may stay overdue, in ms on the clock of the timers. After a suspend many tasks are overdue until the
 * scheduler reads the boot clock again.
 */
const MAX_OVERDUE_TIME = MAX_TIMER_DELAY + 30_000;
/**
 * How long there may be no hub, in ms on the clock of the timers. The previous hub may wait two minutes for the portal
 * before it stops, and the next one for a slow disk.
 */
const MAX_TIME_WITHOUT_HUB = 300_000;

/** What the health of a daemon is checked by. */
interface WatchdogOptions {
  readonly service: Pick<SystemdNotifier, 'watchdogInterval' | 'feedWatchdog'>;
  /** How long the next task has been due, in ms on the boot clock; 0 if none is. */
  overdueMs(): number;
  /** Whether a hub is running; false while it starts or stops. */
  hasHub(): boolean;
  readonly log: Log;
  readonly timers: Timers;
  /** Milliseconds on the clock of the timers, which stops while the machine is suspended. */
  now(): number;
}

/**
 * Sends a keep-alive to systemd's watchdog three times per watchdog interval, as long as the daemon works. The
 * keep-alives stop if the event loop is blocked, the scheduler is stuck or no hub starts, so that systemd restarts the
 * daemon.
 */
export function feedWatchdog({ service, overdueMs, hasHub, log, timers, now }: WatchdogOptions): Disposable {
  const interval = service.watchdogInterval === null ? null : service.watchdogInterval / 3;
  let overdueSince: number | null = null;
  let absentSince: number | null = null;
  let isStarved = false;
  let disarm: () => void = () => undefined;

  function check(late: number): void {
    if (late > BLOCKED_THRESHOLD) log.warn('event_loop_blocked', { seconds: Math.round(late / 1000) });
    overdueSince = overdueMs() > OVERDUE_THRESHOLD ? (overdueSince ?? now()) : null;
    absentSince = hasHub() ? null : (absentSince ?? now());
    const reason = starvationReason();
    const isStuck = reason !== null;
    if (isStuck && !isStarved) log.error('watchdog_starved', { reason });
    if (!isStuck && isStarved) log.info('watchdog_recovered');
    isStarved = isStuck;
    if (!isStuck) service.feedWatchdog();
  }

  function starvationReason(): string | null {
    if (overdueSince !== null && now() - overdueSince > MAX_OVERDUE_TIME) {
      return `the scheduler is ${Math.round(overdueMs() / 1000)} s overdue`;
    }
    if (absentSince !== null && now() - absentSince > MAX_TIME_WITHOUT_HUB) {
      return `no hub has been running for ${Math.round((now() - absentSince) / 1000)} s`;
    }
    return null;
  }

  function arm(delay: number): void {
    const due = now() + delay;
    disarm = timers.after(delay, () => {
      check(now() - due);
      arm(delay);
    });
  }
  if (interval !== null) {
    check(0);
    arm(interval);
  }
  return { [Symbol.dispose]: () => disarm() };
}
