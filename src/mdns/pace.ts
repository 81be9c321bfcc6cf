import type { Timers } from '../core/clock.ts';

/** Does something at most once in a while: what comes meanwhile waits, and of several that do only the last is done. */
export class Pace {
  readonly #timers: Timers;
  readonly #pause: number;
  #waiting: (() => void) | null = null;
  /** Null where there is no pause. */
  #cancel: (() => void) | null = null;

  /** @param pause milliseconds */
  constructor(timers: Timers, pause: number) {
    this.#timers = timers;
    this.#pause = pause;
  }

  do(task: () => void): void {
    if (this.#cancel !== null) {
      this.#waiting = task;
      return;
    }
    this.#cancel = this.#timers.after(this.#pause, () => {
      const next = this.#waiting;
      this.end();
      if (next !== null) this.do(next);
    });
    task();
  }

  /** Does nothing of what waits. */
  end(): void {
    this.#cancel?.();
    this.#cancel = null;
    this.#waiting = null;
  }
}
