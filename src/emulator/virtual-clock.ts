import * as v from 'valibot';
import { instantSchema } from './json.ts';
import type { EmulatorClock } from './options.ts';

/** The emulator's time, as the API and the library report it. */
export const ClockView = v.strictObject({
  now: instantSchema(),
  offset: v.pipe(v.number(), v.description('Seconds ahead of the underlying clock')),
});
export type ClockView = Readonly<v.InferOutput<typeof ClockView>>;

/** An invalid advance. The message names the value found and the values allowed. */
export class ClockError extends Error {
  override readonly name = 'ClockError';
}

/** Largest offset in seconds: a hundred years, so that RFC 3339 can express every instant. */
const MAX_OFFSET_SECONDS = 100 * 365.25 * 86_400;

/** A clock that follows another one at an offset. Tests advance it, so that codes, states and tokens expire. */
export class VirtualClock {
  readonly #clock: EmulatorClock;
  readonly #onAdvance: () => void;
  /** Milliseconds. */
  #offset: number;

  /**
   * @param offset initial offset in seconds, from the state file: without it, issue times would lie in the future
   * @param onAdvance called after the clock was advanced
   */
  constructor(clock: EmulatorClock, offset: number, onAdvance: () => void) {
    this.#clock = clock;
    this.#offset = Math.round(1000 * offset);
    this.#onAdvance = onAdvance;
  }

  /** Milliseconds since 1970. */
  now(): number {
    return this.#clock.now().wall + this.#offset;
  }

  view(): ClockView {
    return { now: new Date(this.now()).toISOString(), offset: this.#offset / 1000 };
  }

  /**
   * Advances the clock. Only {@link reset} sets it back.
   * @throws ClockError if `seconds` is negative or not a number, or if the offset would exceed a hundred years
   */
  advance(seconds: number): void {
    const offset = this.#offset + Math.round(1000 * seconds);
    if (!(typeof seconds === 'number' && seconds >= 0 && offset <= 1000 * MAX_OFFSET_SECONDS)) {
      throw new ClockError(
        `advance: must be a number of seconds, 0 or more, at most ${MAX_OFFSET_SECONDS} in total (found ${typeof seconds === 'string' ? JSON.stringify(seconds) : seconds})`,
      );
    }
    this.#offset = offset;
    this.#onAdvance();
  }

  /** Sets the offset to 0. */
  reset(): void {
    this.#offset = 0;
  }
}
