import { SeededRandom } from '../../test/support/seeded-random.ts';

/** What a plan throws to choose. */
export class Dice extends SeededRandom {
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
