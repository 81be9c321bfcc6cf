import type { Clock } from '../../core/clock.ts';
import { type Allowance, Buckets } from '../../system/limits/token-bucket.ts';

/** What goes on under one key. */
interface Trouble {
  /** When it began, on the boot clock in ms. */
  readonly since: number;
  times: number;
  readonly subjects: Set<string>;
  /** When it was told last, and how long it is told no more; null until it has been. */
  told: { readonly at: number; readonly rest: number } | null;
}

/** What there is to tell of a trouble. */
export interface TroubleTold {
  /** How often it has happened since it began. */
  readonly times: number;
  /** Seconds since it began. */
  readonly lasting: number;
  /** How many it has happened to. */
  readonly subjects: number;
}

const HOUR = 3_600_000;
const DAY = 24 * HOUR;
/** One that comes and goes all the time is told of so often; what lasts is told of all the same. */
const BEGINNINGS: Allowance = { most: 3, every: 2 * HOUR };

/**
 * Says when something that goes wrong at every try is worth a line: when it begins, after an hour, two, four and so on while it
 * lasts, at least once a day, and when it is over. What was not told of when it began, because it had come and gone too often, is
 * told of as soon as it may be, and its end is not told of where its beginning was not.
 */
export class Troubles {
  readonly #clock: Clock;
  readonly #troubles = new Map<string, Trouble>();
  readonly #beginnings = new Buckets();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /**
   * It has happened.
   * @param key what goes wrong, and where
   * @param subject whom it has happened to
   * @returns null where that is not worth a line
   */
  happened(key: string, subject: string): TroubleTold | null {
    const now = this.#clock.now().uptime;
    const trouble = this.#troubles.get(key) ?? { since: now, times: 0, subjects: new Set<string>(), told: null };
    this.#troubles.set(key, trouble);
    trouble.times += 1;
    trouble.subjects.add(subject);
    if (trouble.told === null) {
      const bucket = this.#beginnings.filled(key, BEGINNINGS, now);
      if (bucket.left < 1) return null;
      bucket.left -= 1;
      trouble.told = { at: now, rest: HOUR };
    } else {
      const { at, rest } = trouble.told;
      if (now - at < rest) return null;
      trouble.told = { at: now, rest: Math.min(DAY, 2 * rest) };
    }
    return this.#tell(trouble, now);
  }

  /** It is over, if it was. @returns null where that is not worth a line */
  over(key: string): TroubleTold | null {
    const trouble = this.#troubles.get(key);
    this.#troubles.delete(key);
    return trouble === undefined || trouble.told === null ? null : this.#tell(trouble, this.#clock.now().uptime);
  }

  #tell({ times, since, subjects }: Trouble, now: number): TroubleTold {
    return { times, lasting: Math.round((now - since) / 1000), subjects: subjects.size };
  }
}
