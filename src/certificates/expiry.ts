import type { PortalClock } from '../broker/time/portal-clock.ts';
import type { Scheduler } from '../broker/time/scheduler.ts';
import { type Clock, trueTime } from '../core/clock.ts';

/** How often the age of the leaf is looked at, in ms. */
const EVERY = 60_000;

/** What the leaf's age is judged by. */
export interface ExpiryWatch {
  readonly scheduler: Pick<Scheduler, 'plan'>;
  readonly clock: Clock;
  /** Knows the true time, where something has told it: a leaf's age says nothing by a clock that may be wrong. */
  readonly portalClock: Pick<PortalClock, 'confirmed' | 'whenConfirmed'>;
  /** What shall be left of it at least, in ms. */
  readonly minRemaining: number;
  /** When the leaf in use ends, in ms since 1970. */
  readonly notAfter: () => number;
  /** Called at every look while less is left, with what is left in ms: below 0 it has ended. */
  readonly onShort: (left: number) => void;
}

/** Looks at the age of the leaf, from when the clock is confirmed: a hub may run for long, or be born with a wrong clock. */
export function watchExpiry({ scheduler, clock, portalClock, minRemaining, notAfter, onShort }: ExpiryWatch): void {
  const look = () => {
    const time = trueTime(portalClock.confirmed, clock.now());
    const left = time === null ? minRemaining : notAfter() - time;
    if (left < minRemaining) onShort(left);
  };
  const plan = () =>
    scheduler.plan('the age of the leaf', clock.now().uptime + EVERY, () => {
      look();
      plan();
    });
  portalClock.whenConfirmed(look);
  look();
  plan();
}
