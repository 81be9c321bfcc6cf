import type { Environment } from '../ports.ts';

/** This many loop iterations at the same instant are normal. */
const MAX_ITERATIONS_PER_TICK = 100;
const SPIN_PAUSE_MS = 1000;

/**
 * Keeps a loop whose waits may end at once from blocking the whole hub: too many iterations at one instant are a bug of
 * the hub, and each further one takes a second.
 */
export class SpinGuard {
  readonly #environment: Pick<Environment, 'clock' | 'timers'>;
  /** When the last iteration began, on the boot clock in ms, and how many more began at the same instant. */
  #lastIterationAt = Number.NEGATIVE_INFINITY;
  #iterationsAtOnce = 0;

  constructor(environment: Pick<Environment, 'clock' | 'timers'>) {
    this.#environment = environment;
  }

  /** Await it once in each iteration. @param signal ends the wait */
  async beginIteration(signal: AbortSignal): Promise<void> {
    const { clock, timers } = this.#environment;
    const { uptime } = clock.now();
    this.#iterationsAtOnce = uptime === this.#lastIterationAt ? this.#iterationsAtOnce + 1 : 0;
    this.#lastIterationAt = uptime;
    if (this.#iterationsAtOnce > MAX_ITERATIONS_PER_TICK) await timers.sleep(SPIN_PAUSE_MS, signal);
  }
}
