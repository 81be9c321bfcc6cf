import type { Clock } from '../core/clock.ts';
import type { Log } from '../core/log.ts';

/** The shortest time between two lines, in ms. */
const LOG_INTERVAL = 600_000;

/** Logs refused connections: the first at once, and those that follow together, however many there are. */
export class RefusalLog {
  readonly #log: Log;
  readonly #clock: Clock;
  /** When the last line was logged, on the boot clock in ms; null before the first. */
  #loggedAt: number | null = null;
  /** Refusals since then. */
  #count = 0;

  constructor({ log, clock }: { readonly log: Log; readonly clock: Clock }) {
    this.#log = log;
    this.#clock = clock;
  }

  /** @param address of the client */
  record(address: string): void {
    this.#count += 1;
    const now = this.#clock.now().uptime;
    if (this.#loggedAt !== null && now - this.#loggedAt < LOG_INTERVAL) return;
    this.#log.warn('ingress_connection_refused', { address, count: this.#count });
    this.#loggedAt = now;
    this.#count = 0;
  }
}
