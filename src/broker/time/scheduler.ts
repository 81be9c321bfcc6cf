import { MAX_TIMER_DELAY } from '../../core/clock.ts';
import type { Environment } from '../ports.ts';

interface ScheduledTask {
  /** On the boot clock, in ms. */
  readonly at: number;
  readonly run: () => void;
}

/**
 * Runs tasks at their due times on the boot clock, all with one timer. The timer runs at most a minute, because timers
 * stop while a machine is suspended and the boot clock does not.
 */
export class Scheduler implements Disposable {
  readonly #environment: Pick<Environment, 'clock' | 'timers'>;
  readonly #tasks = new Map<string, ScheduledTask>();
  #disarm: () => void = () => undefined;
  #armedFor = Number.POSITIVE_INFINITY;

  constructor(environment: Pick<Environment, 'clock' | 'timers'>) {
    this.#environment = environment;
  }

  /** Schedules `run` at `at` (boot clock, ms); replaces the task of the same key. */
  plan(key: string, at: number, run: () => void): void {
    this.#tasks.set(key, { at, run });
    if (at < this.#armedFor) this.#arm(at);
  }

  cancel(key: string): void {
    this.#tasks.delete(key);
  }

  /**
   * For how long the next task has been overdue, in ms on the boot clock. It stays near 0 unless the scheduler is
   * stuck.
   */
  get overdue(): number {
    return Math.max(0, this.#environment.clock.now().uptime - this.#next());
  }

  [Symbol.dispose](): void {
    this.#tasks.clear();
    this.#disarm();
  }

  /** When the next task is due; infinity if none is scheduled. */
  #next(): number {
    let next = Number.POSITIVE_INFINITY;
    for (const { at } of this.#tasks.values()) next = Math.min(next, at);
    return next;
  }

  #arm(next: number): void {
    this.#disarm();
    this.#armedFor = next;
    if (next === Number.POSITIVE_INFINITY) return;
    const delay = next - this.#environment.clock.now().uptime;
    this.#disarm = this.#environment.timers.after(Math.min(MAX_TIMER_DELAY, Math.max(0, delay)), () => this.#tick());
  }

  /**
   * Runs the due tasks. A task that one of them schedules waits for the next timer, even if it is due, so that
   * tasks that schedule each other can't block the event loop.
   */
  #tick(): void {
    const now = this.#environment.clock.now().uptime;
    const due: [string, ScheduledTask][] = [];
    for (const [key, entry] of this.#tasks) if (entry.at <= now) due.push([key, entry]);
    for (const [key, entry] of due.sort(([, one], [, other]) => one.at - other.at)) {
      if (this.#tasks.get(key) !== entry) continue;
      this.#tasks.delete(key);
      entry.run();
    }
    this.#arm(this.#next());
  }
}
