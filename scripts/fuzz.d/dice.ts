/** Random numbers that follow from a seed: mulberry32. */
export class Dice {
  #state: number;

  constructor(seed: number) {
    this.#state = seed >>> 0;
  }

  /** From 0 to 1, without 1. */
  fraction(): number {
    this.#state = (this.#state + 0x6d2b79f5) >>> 0;
    let t = this.#state;
    t = Math.imul(t ^ (t >>> 15), t | 1);
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
    return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
  }

  below(limit: number): number {
    return Math.floor(this.fraction() * limit);
  }

  chance(share: number): boolean {
    return this.fraction() < share;
  }

  /** One of them; of none, nothing. */
  of<T>(all: readonly T[], none: T): T {
    return all[this.below(all.length)] ?? none;
  }
}
