import { MAX_TIMER_DELAY } from '../../core/clock.ts';
import type { Environment } from '../environment.ts';

interface ScheduledTask {
  /** On the boot clock, in ms. */
  readonly at: number;
  readonly run: () => void;
}

/**
 * Runs each thing at its due time on the boot clock, all on one timer. The timer never runs longer than a minute: while
 * a machine is suspended timers stand still and the boot clock does not.
 */
export class Scheduler implements Disposable {
  readonly #environment: Pick<Environment, 'clock' | 'timers'>;
  readonly #planned = new Map<string, ScheduledTask>();
  #disarm: () => void = () => undefined;
  #armedFor = Number.POSITIVE_INFINITY;

  constructor(environment: Pick<Environment, 'clock' | 'timers'>) {
    this.#environment = environment;
  }

  /** Runs `run` at `at` (boot clock, ms), in place of what was planned under the same key. */
  plan(key: string, at: number, run: () => void): void {
    this.#planned.set(key, { at, run });
    if (at < this.#armedFor) this.#arm(at);
  }

  cancel(key: string): void {
    this.#planned.delete(key);
  }

  /** For how long the next thing has been due, in ms on the boot clock: nothing is for long, unless this is stuck. */
  get overdue(): number {
    return Math.max(0, this.#environment.clock.now().uptime - this.#next());
  }

  [Symbol.dispose](): void {
    this.#planned.clear();
    this.#disarm();
  }

  /** When the next thing is due; never where nothing is planned. */
  #next(): number {
    let next = Number.POSITIVE_INFINITY;
    for (const { at } of this.#planned.values()) next = Math.min(next, at);
    return next;
  }

  #arm(next: number): void {
    this.#disarm();
    this.#armedFor = next;
    if (next === Number.POSITIVE_INFINITY) return;
    const delay = next - this.#environment.clock.now().uptime;
    this.#disarm = this.#environment.timers.after(Math.min(MAX_TIMER_DELAY, Math.max(0, delay)), () => this.#tick());
  }

  /** What is planned meanwhile waits for the next turn of the event loop, however due it is: nothing can stop the hub here. */
  #tick(): void {
    const now = this.#environment.clock.now().uptime;
    const due = [...this.#planned].filter(([, { at }]) => at <= now).sort(([, one], [, other]) => one.at - other.at);
    for (const [key, entry] of due) {
      if (this.#planned.get(key) !== entry) continue;
      this.#planned.delete(key);
      entry.run();
    }
    this.#arm(this.#next());
  }
}
