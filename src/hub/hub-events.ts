import { messageOf } from '../core/failure.ts';
import type { Log } from '../core/log.ts';
import type { ConnectionEvent, EmitEvent } from '../core/reports/history.ts';

/** Passes events of appliances to all listeners. An error of a listener is logged, and does not reach the emitter. */
export class HubEvents {
  readonly #listeners = new Set<EmitEvent>();
  readonly #log: Log;

  constructor(log: Log) {
    this.#log = log;
  }

  /** Calls `listener` for every event from now on. */
  subscribe(listener: EmitEvent): void {
    this.#listeners.add(listener);
  }

  /** Calls all listeners, and returns after the last one. */
  readonly emit = (event: ConnectionEvent): void => {
    for (const listener of this.#listeners) {
      try {
        listener(event);
      } catch (error) {
        this.#log.error('event_handler_failed', { kind: event.kind, error: messageOf(error) });
      }
    }
  };
}
