import { messageOf } from '../core/failure.ts';
import type { Log } from '../core/log.ts';
import type { ApplianceEvent, EmitEvent } from '../core/reports/appliance-event.ts';

/** Carries what happens to appliances to all who listen; who tells of it never hears of their trouble. */
export class HubEvents {
  readonly #listeners = new Set<EmitEvent>();
  readonly #log: Log;

  constructor(log: Log) {
    this.#log = log;
  }

  /** From now on `listener` hears of every event. */
  subscribe(listener: EmitEvent): void {
    this.#listeners.add(listener);
  }

  /** Tells all who listen, and comes back when each has taken it. */
  readonly emit = (event: ApplianceEvent): void => {
    for (const listener of this.#listeners) {
      try {
        listener(event);
      } catch (error) {
        this.#log.error('event_handler_failed', { kind: event.kind, error: messageOf(error) });
      }
    }
  };
}
