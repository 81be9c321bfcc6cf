import * as v from 'valibot';
import { instantSchema } from './http/json-body.ts';
import type { EmulatorClock } from './settings/options.ts';

/** The emulator's time as the outside sees it. */
export const ClockView = v.strictObject({
  now: instantSchema(),
  offset: v.pipe(v.number(), v.description('Seconds ahead of the clock that the emulator was given')),
});
export type ClockView = Readonly<v.InferOutput<typeof ClockView>>;

/** An advance that can't be made; the message names what was found and what is allowed. */
export class ClockError extends Error {
  override readonly name = 'ClockError';
}

/** The furthest that time goes, in seconds: a hundred years, so that every instant stays one that RFC 3339 can say. */
const MAX_OFFSET_SECONDS = 100 * 365.25 * 86_400;

/** A clock that runs with another one, and can be put ahead of it: codes, states and tokens then expire at once. */
export class VirtualClock implements EmulatorClock {
  readonly #clock: EmulatorClock;
  readonly #onAdvance: () => void;
  /** Milliseconds. */
  #offset: number;

  /**
   * @param offset how far it is ahead at first, in seconds: what was issued before would otherwise come from the future
   * @param onAdvance called when the clock was put ahead
   */
  constructor(clock: EmulatorClock, offset: number, onAdvance: () => void) {
    this.#clock = clock;
    this.#offset = Math.round(1000 * offset);
    this.#onAdvance = onAdvance;
  }

  now(): { readonly wall: number } {
    return { wall: this.#clock.now().wall + this.#offset };
  }

  view(): ClockView {
    return { now: new Date(this.now().wall).toISOString(), offset: this.#offset / 1000 };
  }

  /**
   * Puts the clock ahead by so many seconds; it never goes back, except by {@link reset}.
   * @throws ClockError where that is negative, no number, or a hundred years from the clock's own time in all
   */
  advance(seconds: number): void {
    const offset = this.#offset + Math.round(1000 * seconds);
    if (!(seconds >= 0 && offset <= 1000 * MAX_OFFSET_SECONDS)) {
      throw new ClockError(
        `advance: found ${seconds}; allowed is a number of seconds, 0 or more, ${MAX_OFFSET_SECONDS} in all`,
      );
    }
    this.#offset = offset;
    this.#onAdvance();
  }

  /** Goes back to the time of the clock it was given. */
  reset(): void {
    this.#offset = 0;
  }
}
