import * as v from 'valibot';
import type { Memory } from './memory/memory.ts';
import type { EmulatorClock } from './settings/options.ts';

/** The emulator's time as the outside sees it. */
export interface ClockView {
  /** RFC 3339, UTC. */
  readonly now: string;
  /** How far the emulator is ahead of the clock it was given, in seconds. */
  readonly offset: number;
}

/** An advance that can't be made; the message names what was found and what is allowed. */
export class ClockError extends Error {
  override readonly name = 'ClockError';
}

/** The furthest that time goes, in seconds: a hundred years, so that every instant stays one that RFC 3339 can say. */
const MAX_OFFSET = 100 * 365.25 * 86_400;

/** What the offset is kept as. */
const KEPT_AS = 'clock/offset';

/**
 * A clock that runs with another one, and can be put ahead of it: codes, states and tokens then expire at once. How far it
 * is ahead outlives the process where there is a state file: what was issued would otherwise come from the future.
 */
export class VirtualClock implements EmulatorClock {
  readonly #clock: EmulatorClock;
  readonly #memory: Pick<Memory, 'setting' | 'keepSetting'>;
  readonly #advanced: () => void;
  /** Milliseconds. */
  #offset: number;

  /**
   * @param memory has the offset from before, and keeps it
   * @param advanced called when the clock was put ahead
   * @throws ValiError where the offset that was kept is damaged
   */
  constructor(clock: EmulatorClock, memory: Pick<Memory, 'setting' | 'keepSetting'>, advanced: () => void) {
    this.#clock = clock;
    this.#memory = memory;
    this.#offset = v.parse(KeptOffset, memory.setting(KEPT_AS) ?? '0');
    this.#advanced = advanced;
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
    if (!(seconds >= 0 && offset <= 1000 * MAX_OFFSET)) {
      throw new ClockError(
        `advance: found ${seconds}; allowed is a number of seconds, 0 or more, ${MAX_OFFSET} in all`,
      );
    }
    this.#put(offset);
    this.#advanced();
  }

  /** Goes back to the time of the clock it was given. */
  reset(): void {
    this.#put(0);
  }

  #put(offset: number): void {
    this.#memory.keepSetting(KEPT_AS, String(offset));
    this.#offset = offset;
  }
}

const KeptOffset = v.pipe(v.string(), v.regex(/^\d{1,15}$/), v.transform(Number), v.maxValue(1000 * MAX_OFFSET));
