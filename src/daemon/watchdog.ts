import { MAX_TIMER_DELAY, type Timers } from '../core/clock.ts';
import type { Log } from '../core/log.ts';
import type { SystemdNotifier } from '../system/systemd-notifier.ts';

/** Timers that run late by more than this are worth a line in the log, in ms: the daemon did nothing else meanwhile. */
const BLOCKED_THRESHOLD = 5000;
/** What is due for longer than this, in ms on the boot clock, did not run when it should have. */
const OVERDUE_THRESHOLD = 5000;
/**
 * For so long something may be overdue, in ms on the clock of the timers. After a suspension much is, until the scheduler
 * looks at the boot clock again.
 */
const MAX_OVERDUE_TIME = MAX_TIMER_DELAY + 30_000;
/**
 * For so long there may be no hub, in ms on the clock of the timers: the one before may wait two minutes for the portal before
 * it goes, and the next one for a slow disk.
 */
const MAX_TIME_WITHOUT_HUB = 300_000;

/** What the health of a daemon is judged by. */
export interface WatchdogOptions {
  readonly service: Pick<SystemdNotifier, 'watchdogInterval' | 'feedWatchdog'>;
  /** For how long the next thing has been due, in ms on the boot clock; 0 where nothing is. */
  overdueMs(): number;
  /** Whether there is a hub, and not one that has yet to come up, or to go. */
  hasHub(): boolean;
  readonly log: Log;
  readonly timers: Timers;
  /** Milliseconds on the clock that timers run by, which stands still while the machine is suspended. */
  now(): number;
}

/**
 * Feeds systemd's watchdog three times as often as it wants to be, as long as the daemon works: an event loop that is
 * blocked feeds nothing, and where the scheduler is stuck, or no hub comes up, it is left hungry, so that systemd starts the
 * daemon anew.
 */
export function feedWatchdog({
  service,
  overdueMs: overdue,
  hasHub: isThere,
  log,
  timers,
  now,
}: WatchdogOptions): Disposable {
  const every = service.watchdogInterval === null ? null : service.watchdogInterval / 3;
  let overdueSince: number | null = null;
  let absentSince: number | null = null;
  let isHungry = false;
  let disarm: () => void = () => undefined;

  function look(late: number): void {
    if (late > BLOCKED_THRESHOLD) log.warn('event_loop_blocked', { seconds: Math.round(late / 1000) });
    overdueSince = overdue() > OVERDUE_THRESHOLD ? (overdueSince ?? now()) : null;
    absentSince = isThere() ? null : (absentSince ?? now());
    const reason = whyHungry();
    const isStuck = reason !== null;
    if (isStuck && !isHungry) log.error('watchdog_starved', { reason });
    if (!isStuck && isHungry) log.info('watchdog_recovered');
    isHungry = isStuck;
    if (!isStuck) service.feedWatchdog();
  }

  function whyHungry(): string | null {
    if (overdueSince !== null && now() - overdueSince > MAX_OVERDUE_TIME) {
      return `the scheduler has not run what was due ${Math.round(overdue() / 1000)} s ago`;
    }
    if (absentSince !== null && now() - absentSince > MAX_TIME_WITHOUT_HUB) {
      return `there has been no hub for ${Math.round((now() - absentSince) / 1000)} s`;
    }
    return null;
  }

  function arm(delay: number): void {
    const due = now() + delay;
    disarm = timers.after(delay, () => {
      look(now() - due);
      arm(delay);
    });
  }
  if (every !== null) {
    look(0);
    arm(every);
  }
  return { [Symbol.dispose]: () => disarm() };
}
