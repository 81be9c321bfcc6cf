import TinyQueue from 'tinyqueue';
import { MAX_TIMER_DELAY } from '../../core/clock.ts';
import type { Environment } from '../environment.ts';

interface Entry {
  readonly key: string;
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
  readonly #queue = new TinyQueue<Entry>([], (a, b) => a.at - b.at);
  readonly #current = new Map<string, Entry>();
  #disarm: () => void = () => undefined;
  #armedFor = Number.POSITIVE_INFINITY;

  constructor(environment: Pick<Environment, 'clock' | 'timers'>) {
    this.#environment = environment;
  }

  /** Runs `run` at `at` (boot clock, ms), in place of what was planned under the same key. */
  plan(key: string, at: number, run: () => void): void {
    const entry = { key, at, run };
    this.#current.set(key, entry);
    this.#queue.push(entry);
    if (at < this.#armedFor) this.#arm();
  }

  cancel(key: string): void {
    this.#current.delete(key);
  }

  /** For how long the next thing has been due, in ms on the boot clock: nothing is for long, unless this is stuck. */
  get overdue(): number {
    this.#dropStale();
    const next = this.#queue.peek();
    return next === undefined ? 0 : Math.max(0, this.#environment.clock.now().uptime - next.at);
  }

  [Symbol.dispose](): void {
    this.#current.clear();
    this.#disarm();
  }

  #arm(): void {
    this.#disarm();
    this.#dropStale();
    const next = this.#queue.peek();
    this.#armedFor = next?.at ?? Number.POSITIVE_INFINITY;
    if (next === undefined) return;
    const delay = next.at - this.#environment.clock.now().uptime;
    this.#disarm = this.#environment.timers.after(Math.min(MAX_TIMER_DELAY, Math.max(0, delay)), () => this.#tick());
  }

  /** What is planned meanwhile waits for the next turn of the event loop, however due it is: nothing can stop the hub here. */
  #tick(): void {
    const now = this.#environment.clock.now().uptime;
    const due: Entry[] = [];
    for (let next = this.#queue.peek(); next !== undefined && next.at <= now; next = this.#queue.peek()) {
      this.#queue.pop();
      due.push(next);
    }
    for (const entry of due) {
      if (this.#current.get(entry.key) !== entry) continue;
      this.#current.delete(entry.key);
      entry.run();
    }
    this.#arm();
  }

  /** Entries that were planned anew or cancelled stay in the queue until they come to its head. */
  #dropStale(): void {
    for (let head = this.#queue.peek(); head !== undefined && this.#current.get(head.key) !== head; ) {
      this.#queue.pop();
      head = this.#queue.peek();
    }
  }
}
