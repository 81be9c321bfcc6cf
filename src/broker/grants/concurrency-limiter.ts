import type { Timers } from '../../core/clock.ts';

interface QueuedTask {
  readonly key: string;
  foreground: boolean;
  readonly start: (foreground: boolean) => void;
}

/** How many tasks may run at once. */
export interface ConcurrencyLimits {
  /** While nobody waits for the next one. Where so many hang, one more at a time finds out whether all would. */
  readonly background: number;
  /** While somebody waits for the next one; those that hang do not count. */
  readonly foreground: number;
  /** Of all tasks, with those that hang. */
  readonly total: number;
  /** A task that has been running for so many ms hangs. */
  readonly timeout: number;
}

/**
 * Lets only so many tasks run at once and queues the others. A foreground task, one that somebody waits for, goes first, has
 * the higher limit, and is not held up by tasks that hang. Otherwise the one that has waited longest goes first.
 */
export class ConcurrencyLimiter {
  readonly #limits: ConcurrencyLimits;
  readonly #timers: Timers;
  /** In the order in which they came. */
  readonly #queue: QueuedTask[] = [];
  #running = 0;
  #hanging = 0;

  constructor(limits: ConcurrencyLimits, timers: Timers) {
    this.#limits = limits;
    this.#timers = timers;
  }

  /**
   * Runs `work` as soon as the limits allow it, and tells it whether somebody waits for it by then.
   * @param key names the task, see {@link promote}
   */
  async run<Result>(key: string, foreground: boolean, work: (foreground: boolean) => Promise<Result>): Promise<Result> {
    let isForeground = foreground;
    if (this.#mayRun(foreground)) this.#running += 1;
    else isForeground = await new Promise((begin) => this.#queue.push({ key, foreground, start: begin }));
    let hangs = false;
    const disarm = this.#timers.after(this.#limits.timeout, () => {
      hangs = true;
      this.#hanging += 1;
      this.#startNext();
    });
    try {
      return await work(isForeground);
    } finally {
      disarm();
      this.#running -= 1;
      if (hangs) this.#hanging -= 1;
      this.#startNext();
    }
  }

  /** Somebody waits for this task now. */
  promote(key: string): void {
    for (const task of this.#queue) if (task.key === key) task.foreground = true;
    this.#startNext();
  }

  #mayRun(isForeground: boolean): boolean {
    const { background, foreground, total } = this.#limits;
    const limit = isForeground ? foreground : Math.max(1, background - this.#hanging);
    return this.#running - this.#hanging < limit && this.#running < total;
  }

  /** A task that is next counts as running at once, so that no other comes in between. */
  #startNext(): void {
    for (;;) {
      const next = this.#queue.find(({ foreground }) => foreground) ?? this.#queue[0];
      if (next === undefined || !this.#mayRun(next.foreground)) return;
      this.#queue.splice(this.#queue.indexOf(next), 1);
      this.#running += 1;
      next.start(next.foreground);
    }
  }
}
