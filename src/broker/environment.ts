import type { Clock, Timers } from '../core/clock.ts';
import type { Log } from '../core/log.ts';
import type { Random } from '../core/random.ts';
import type { EmitEvent } from '../core/reports/history.ts';

/** The environment of the broker, passed in so that tests can replace it. */
export interface Environment {
  readonly clock: Clock;
  readonly timers: Timers;
  readonly random: Random;
  readonly log: Log;
  /** Emits what happens to an appliance, for its history, the metrics and the notices. */
  readonly emit: EmitEvent;
}
