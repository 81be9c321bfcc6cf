interface Waiting {
  readonly key: string;
  urgent: boolean;
  readonly begin: (urgent: boolean) => void;
}

/**
 * Lets only so many things run at once; the others wait for their turn. What somebody waits for goes first, and within
 * that what has waited longest.
 */
export class Turns {
  readonly #most: number;
  #running = 0;
  #waiting: Waiting[] = [];

  /** @param most how many may run at once */
  constructor(most: number) {
    this.#most = most;
  }

  /**
   * Runs `work` when it is its turn; it is told whether somebody waits for it.
   * @param key names it, see {@link hurry}
   */
  async take<Result>(key: string, urgent: boolean, work: (urgent: boolean) => Promise<Result>): Promise<Result> {
    let wanted = urgent;
    if (this.#running < this.#most) this.#running += 1;
    else wanted = await new Promise((begin) => this.#waiting.push({ key, urgent, begin }));
    try {
      return await work(wanted);
    } finally {
      this.#next();
    }
  }

  /** Somebody waits for this one now. */
  hurry(key: string): void {
    for (const one of this.#waiting) if (one.key === key) one.urgent = true;
  }

  /** Whoever is next takes the place over, so that nobody comes in between. */
  #next(): void {
    const urgent = this.#waiting.findIndex((one) => one.urgent);
    const [next] = this.#waiting.splice(Math.max(0, urgent), 1);
    if (next === undefined) this.#running -= 1;
    else next.begin(next.urgent);
  }
}
