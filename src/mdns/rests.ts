import type { Timers } from '../core/clock.ts';

/** After a conflict, how long the next one waits, in ms: longer each time, until there was none for a while. */
const SHORTEST = 1000;
const LONGEST = 60_000;

/** RFC 6762 section 8.1 allows 15 conflicts in ten seconds; these pauses allow 4, however often a neighbour claims a name. */
export class Rests {
  readonly #timers: Timers;
  #rest = SHORTEST;
  #resting = false;
  #ended = false;
  #waiting: (() => void) | null = null;
  #cancel: () => void = () => undefined;

  constructor(timers: Timers) {
    this.#timers = timers;
  }

  /** Whether there was a conflict a short time ago. */
  get disturbed(): boolean {
    return this.#resting || this.#rest > SHORTEST;
  }

  /** Runs `settle` now, or where there was a conflict just before, after a rest; of several then, the last one. */
  afterwards(settle: () => void): void {
    if (this.#ended) return;
    if (this.#resting) {
      this.#waiting = settle;
      return;
    }
    this.#resting = true;
    this.#cancel();
    this.#cancel = this.#timers.after(this.#rest, () => this.#rested());
    this.#rest = Math.min(2 * this.#rest, LONGEST);
    settle();
  }

  /** Runs nothing any more. */
  end(): void {
    this.#cancel();
    this.#ended = true;
  }

  #rested(): void {
    const settle = this.#waiting;
    this.#resting = false;
    this.#waiting = null;
    if (settle !== null) this.afterwards(settle);
    else this.#cancel = this.#timers.after(LONGEST, () => this.#calmed());
  }

  #calmed(): void {
    this.#rest = SHORTEST;
  }
}
