import type { Clock, Timers } from '../../core/clock.ts';

/** Keeps a shortest time between the requests to a token endpoint. */
export class RequestPacer {
  readonly #interval: number;
  readonly #clock: Clock;
  readonly #timers: Timers;
  /** The earliest time of the next request, on the boot clock in ms. */
  #next = Number.NEGATIVE_INFINITY;

  /** @param interval in ms; 0 for none */
  constructor(interval: number, clock: Clock, timers: Timers) {
    this.#interval = interval;
    this.#clock = clock;
    this.#timers = timers;
  }

  /**
   * Waits until the next request may be sent, or until the signal is aborted. Callers go on in the order in which they
   * came.
   */
  async turn(signal?: AbortSignal): Promise<void> {
    const now = this.#clock.now().uptime;
    const at = Math.max(now, this.#next);
    this.#next = at + this.#interval;
    if (at > now) await this.#timers.sleep(at - now, signal);
  }
}
