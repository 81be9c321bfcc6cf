import type { Timers } from '../../core/clock.ts';

/** How long the next conflict waits after one, in ms: twice as long each time, until there was none for the longest. */
const MIN_BACKOFF = 1000;
const MAX_BACKOFF = 60_000;

/** RFC 6762 section 8.1 allows 15 conflicts in ten seconds; this backoff allows 4, however often a neighbour claims a name. */
export class ConflictBackoff {
  readonly #timers: Timers;
  #backoff = MIN_BACKOFF;
  #isBackingOff = false;
  #ended = false;
  #waiting: (() => void) | null = null;
  #cancel: () => void = () => undefined;

  constructor(timers: Timers) {
    this.#timers = timers;
  }

  /** Whether there was a conflict a short time ago. */
  get hadConflict(): boolean {
    return this.#isBackingOff || this.#backoff > MIN_BACKOFF;
  }

  /** Runs `settle` now, or, if there was a conflict just before, after the backoff; of several then, the last one. */
  run(settle: () => void): void {
    if (this.#ended) return;
    if (this.#isBackingOff) {
      this.#waiting = settle;
      return;
    }
    this.#isBackingOff = true;
    this.#cancel();
    this.#cancel = this.#timers.after(this.#backoff, () => this.#resume());
    this.#backoff = Math.min(2 * this.#backoff, MAX_BACKOFF);
    settle();
  }

  /** Runs nothing any more. */
  end(): void {
    this.#cancel();
    this.#ended = true;
  }

  #resume(): void {
    const settle = this.#waiting;
    this.#isBackingOff = false;
    this.#waiting = null;
    if (settle !== null) this.run(settle);
    else {
      this.#cancel = this.#timers.after(MAX_BACKOFF, () => {
        this.#backoff = MIN_BACKOFF;
      });
    }
  }
}
