import TinyQueue from 'tinyqueue';
import type { Timers } from '../../core/clock.ts';

interface Waiting {
  readonly key: string;
  /** Grows with each that comes. */
  readonly number: number;
  urgent: boolean;
  readonly begin: (urgent: boolean) => void;
}

/** How many may run at once. */
export interface Places {
  /** As long as nobody waits for the next one. Where so many hang, one more at a time finds out whether all would. */
  readonly usual: number;
  /** As long as somebody waits for the next one; those that hang not counted. */
  readonly urgent: number;
  /** Of all, those that hang too. */
  readonly most: number;
  /** One that has been running for so many ms hangs. */
  readonly patience: number;
}

/**
 * Lets only so many things run at once; the others wait for their turn. What somebody waits for goes first, has more
 * places, and is not held up by those that hang; within that, what has waited longest goes first.
 */
export class Turns {
  readonly #places: Places;
  readonly #timers: Timers;
  /** In the order in which they came; those that are urgent by now are passed over. */
  readonly #usual: Waiting[] = [];
  readonly #urgent = new TinyQueue<Waiting>([], (a, b) => a.number - b.number);
  readonly #byKey = new Map<string, Waiting>();
  #came = 0;
  #running = 0;
  #hanging = 0;

  constructor(places: Places, timers: Timers) {
    this.#places = places;
    this.#timers = timers;
  }

  /**
   * Runs `work` when it is its turn; it is told whether somebody waits for it.
   * @param key names it, see {@link hurry}
   */
  async take<Result>(key: string, urgent: boolean, work: (urgent: boolean) => Promise<Result>): Promise<Result> {
    let wanted = urgent;
    if (this.#hasPlace(urgent)) this.#running += 1;
    else wanted = await new Promise((begin) => this.#wait({ key, number: this.#came++, urgent, begin }));
    let hangs = false;
    const disarm = this.#timers.after(this.#places.patience, () => {
      hangs = true;
      this.#hanging += 1;
      this.#fill();
    });
    try {
      return await work(wanted);
    } finally {
      disarm();
      this.#running -= 1;
      if (hangs) this.#hanging -= 1;
      this.#fill();
    }
  }

  /** Somebody waits for this one now. */
  hurry(key: string): void {
    const one = this.#byKey.get(key);
    if (one !== undefined && !one.urgent) {
      one.urgent = true;
      this.#urgent.push(one);
    }
    this.#fill();
  }

  #wait(one: Waiting): void {
    this.#byKey.set(one.key, one);
    if (one.urgent) this.#urgent.push(one);
    else this.#usual.push(one);
  }

  #hasPlace(urgent: boolean): boolean {
    const { usual, urgent: forUrgent, most } = this.#places;
    const allowed = urgent ? forUrgent : Math.max(1, usual - this.#hanging);
    return this.#running - this.#hanging < allowed && this.#running < most;
  }

  /** Whoever is next takes a free place over at once, so that nobody comes in between. */
  #fill(): void {
    for (;;) {
      const next = this.#next();
      if (next === undefined || !this.#hasPlace(next.urgent)) return;
      if (next.urgent) this.#urgent.pop();
      else this.#usual.shift();
      if (this.#byKey.get(next.key) === next) this.#byKey.delete(next.key);
      this.#running += 1;
      next.begin(next.urgent);
    }
  }

  #next(): Waiting | undefined {
    while (this.#usual[0]?.urgent) this.#usual.shift();
    return this.#urgent.peek() ?? this.#usual[0];
  }
}
