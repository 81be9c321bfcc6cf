import type { Clock, Timers } from '../core/clock.ts';
import type { Log } from '../core/log.ts';
import type { Random } from '../core/random.ts';
import type { EmitEvent } from '../core/reports/appliance-event.ts';

/** What the broker needs of what is around it, passed in so that tests can hold it. */
export interface Environment {
  readonly clock: Clock;
  readonly timers: Timers;
  readonly random: Random;
  readonly log: Log;
  /** Reports what happens to an appliance: to its history, the metrics and the notices. */
  readonly emit: EmitEvent;
}
