import type { Clock } from '../core/clock.ts';
import type { ConfirmedTime } from '../core/grant.ts';

/** Remembers the true time that a portal's `Date` told, so that tokens of an earlier boot can be aged by it. */
export class PortalClock {
  readonly #clock: Clock;
  #confirmed: ConfirmedTime | null = null;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  get confirmed(): ConfirmedTime | null {
    return this.#confirmed;
  }

  /** @param portalTime ms since 1970, as an answer that has just come says; null where it does not */
  learn(portalTime: number | null): void {
    if (portalTime !== null) this.#confirmed = { wall: portalTime, at: this.#clock.now() };
  }
}
