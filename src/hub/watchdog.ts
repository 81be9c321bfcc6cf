import { LONGEST_TIMER, type Timers } from '../core/clock.ts';
import type { Log } from '../core/log.ts';
import type { ServiceManager } from '../system/service-manager.ts';

/** Timers that run late by more than this are worth a line in the log, in ms: the daemon did nothing else meanwhile. */
const LATE = 5000;
/** What is due for longer than this, in ms on the boot clock, did not run when it should have. */
const OVERDUE = 5000;
/**
 * For so long something may be overdue, in ms on the clock of the timers. After a suspension much is, until the scheduler
 * looks at the boot clock again.
 */
const LONGEST_OVERDUE = LONGEST_TIMER + 30_000;

/** What the health of a daemon is judged by. */
export interface WatchdogOptions {
  readonly service: Pick<ServiceManager, 'watchdog' | 'feedWatchdog'>;
  /** For how long the next thing has been due, in ms on the boot clock; 0 where nothing is. */
  overdue(): number;
  readonly log: Log;
  readonly timers: Timers;
  /** Milliseconds on the clock that timers run by, which stands still while the machine is suspended. */
  now(): number;
}

/**
 * Feeds systemd's watchdog three times as often as it wants to be, as long as the daemon works: an event loop that is
 * blocked feeds nothing, and where the scheduler is stuck it is left hungry, so that systemd starts the daemon anew.
 */
export function feedWatchdog({ service, overdue, log, timers, now }: WatchdogOptions): Disposable {
  const every = service.watchdog === null ? null : service.watchdog / 3;
  let overdueSince: number | null = null;
  let isHungry = false;
  let disarm: () => void = () => undefined;

  function look(late: number): void {
    if (late > LATE) log.warn('event loop was blocked', { seconds: Math.round(late / 1000) });
    overdueSince = overdue() > OVERDUE ? (overdueSince ?? now()) : null;
    const isStuck = overdueSince !== null && now() - overdueSince > LONGEST_OVERDUE;
    if (isStuck && !isHungry) {
      const reason = `the scheduler has not run what was due ${Math.round(overdue() / 1000)} s ago`;
      log.error('watchdog is not fed any more, systemd will end the daemon', { reason });
    }
    if (!isStuck && isHungry) log.info('watchdog is fed again');
    isHungry = isStuck;
    if (!isStuck) service.feedWatchdog();
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
