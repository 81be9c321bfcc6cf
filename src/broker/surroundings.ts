import type { Clock, Timers } from '../core/clock.ts';
import type { Log } from '../core/log.ts';
import type { Random } from '../core/random.ts';

/** What the broker needs of the machine, passed in so that tests can hold it. */
export interface Surroundings {
  readonly clock: Clock;
  readonly timers: Timers;
  readonly random: Random;
  readonly log: Log;
}
