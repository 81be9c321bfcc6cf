import type { Scheduler } from '../broker/scheduler.ts';
import { type Clock, type ConfirmedTime, trueTime } from '../core/clock.ts';

/** How often the age of the leaf is looked at, in ms. */
const EVERY = 3_600_000;
/** It is issued anew when it has less than this left, in ms. */
const LEAST = 365 * 86_400_000;

/** What is needed to keep the leaf from ending. */
export interface LeafAge {
  readonly scheduler: Pick<Scheduler, 'plan'>;
  readonly clock: Clock;
  /** The true time, where something has told it: a leaf's age says nothing by a clock that may be wrong. */
  readonly confirmed: () => ConfirmedTime | null;
  /** When the leaf in use ends, in ms since 1970. */
  readonly notAfter: () => number;
  readonly renew: () => Promise<void>;
}

/** Has the leaf issued anew in its last year, which only a hub comes to see that runs for long or was born with a wrong clock. */
export function watchLeafAge({ scheduler, clock, confirmed, notAfter, renew }: LeafAge): void {
  const look = () => {
    const time = trueTime(confirmed(), clock.now());
    if (time !== null && notAfter() - time < LEAST) void renew();
    plan();
  };
  const plan = () => scheduler.plan('the age of the leaf', clock.now().uptime + EVERY, look);
  plan();
}
