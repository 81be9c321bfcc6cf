import type { Clock, Timers } from '../../core/clock.ts';
import { withTimeout } from '../../system/clock.ts';
import type { BrokerStore } from '../ports.ts';

/** The shortest time between two looks, in ms: anybody can send credentials that the hub does not know. */
const MIN_LOOK_INTERVAL = 1000;
/** A request waits at most this long for a look, in ms. */
const MAX_WAIT = 3000;

/**
 * Looks for what other hubs of a site have changed a moment ago, before credentials that this hub does not know are
 * rejected. Requests that arrive within a second share one look, which begins after the last of them has arrived.
 */
export class NewsLook {
  readonly #store: Pick<BrokerStore, 'catchUp' | 'writeProblem'>;
  readonly #environment: { readonly clock: Clock; readonly timers: Timers };
  /** Whether the store has said that there are no other hubs. */
  #isAlone = false;
  #lastBegun = Number.NEGATIVE_INFINITY;
  /** The look that has not begun yet. */
  #next: Promise<void> | null = null;

  constructor(
    store: Pick<BrokerStore, 'catchUp' | 'writeProblem'>,
    environment: { readonly clock: Clock; readonly timers: Timers },
  ) {
    this.#store = store;
    this.#environment = environment;
  }

  /** @returns whether it has looked, so that the credentials may be known now; false without a site */
  async take(): Promise<boolean> {
    if (this.#isAlone || this.#store.writeProblem !== null) return false;
    this.#next ??= this.#plan();
    await withTimeout(this.#next, MAX_WAIT, this.#environment.timers);
    return !this.#isAlone;
  }

  async #plan(): Promise<void> {
    const { clock, timers } = this.#environment;
    const wait = this.#lastBegun + MIN_LOOK_INTERVAL - clock.now().uptime;
    await (wait > 0 ? timers.sleep(wait) : undefined);
    this.#lastBegun = clock.now().uptime;
    this.#next = null;
    // While the database is away, what this hub knows counts.
    this.#isAlone = !(await this.#store.catchUp().catch(() => true));
  }
}
