/**
 * Measures everything once a round, so that what disturbs the machine disturbs all of it; another one begins each round,
 * so that none always runs on a warmed-up machine.
 */
export async function inTurns<One>(
  rounds: number,
  all: readonly One[],
  measure: (one: One, round: number) => Promise<void>,
): Promise<void> {
  for (let round = 0; round < rounds; round += 1) {
    for (let index = 0; index < all.length; index += 1) {
      await measure(all[(index + round) % all.length] as One, round);
    }
  }
}

/** Gathers figures by what and of what they are, in the order in which they come. */
export class Figures {
  readonly #all = new Map<
    string,
    { what: string; of: string; unit: string; values: number[]; better: 'more' | 'less' }
  >();

  add(what: string, of: string, unit: string, value: number, better: 'more' | 'less' = 'less'): void {
    const key = JSON.stringify([what, of]);
    const one = this.#all.get(key) ?? { what, of, unit, values: [], better };
    one.values.push(value);
    this.#all.set(key, one);
  }

  get all(): { what: string; of: string; unit: string; values: number[]; better: 'more' | 'less' }[] {
    return [...this.#all.values()];
  }
}
