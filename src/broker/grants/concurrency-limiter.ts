import type { Timers } from '../../core/clock.ts';

interface QueuedTask {
  readonly key: string;
  foreground: boolean;
  readonly start: (foreground: boolean) => void;
}

/** How many tasks may run at once. */
export interface ConcurrencyLimits {
  /**
   * Limit if the next task is a background task. Each hanging task lowers it by one, but never below 1: that one shows
   * whether further tasks would hang too.
   */
  readonly background: number;
  /** Limit if the next task is a foreground task. Hanging tasks do not count. */
  readonly foreground: number;
  /** Limit for all tasks, including hanging ones. */
  readonly total: number;
  /** A task that has been running for this many ms counts as hanging. */
  readonly timeout: number;
}

/**
 * Limits how many tasks run at once and queues the others. Foreground tasks, which a client or a person waits for, go
 * first, have the higher limit and are not held up by hanging tasks. Otherwise the task that has waited longest goes
 * first.
 */
export class ConcurrencyLimiter {
  readonly #limits: ConcurrencyLimits;
  readonly #timers: Timers;
  /** In order of arrival. */
  readonly #queue: QueuedTask[] = [];
  #running = 0;
  #hanging = 0;

  constructor(limits: ConcurrencyLimits, timers: Timers) {
    this.#limits = limits;
    this.#timers = timers;
  }

  /**
   * Runs `work` as soon as the limits allow it. `work` receives whether the task is a foreground task by then.
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

  /** Turns a queued task into a foreground task. */
  promote(key: string): void {
    for (const task of this.#queue) if (task.key === key) task.foreground = true;
    this.#startNext();
  }

  #mayRun(isForeground: boolean): boolean {
    const { background, foreground, total } = this.#limits;
    const limit = isForeground ? foreground : Math.max(1, background - this.#hanging);
    return this.#running - this.#hanging < limit && this.#running < total;
  }

  /** Counts the next task as running before it starts, so that no other task takes its place. */
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
