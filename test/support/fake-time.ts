import { setImmediate as turn } from 'node:timers/promises';
import type { Clock, Instant, Timers } from '../../src/core/clock.ts';

interface Timer {
  /** On the clock that stands still while the machine is suspended. */
  readonly at: number;
  readonly number: number;
  readonly run: () => void;
}

/** Counts what is under way outside of virtual time (requests, writes), so that time stands still meanwhile. */
export class PendingWork {
  #pending = 0;

  get isIdle(): boolean {
    return this.#pending === 0;
  }

  /** The same object; while a promise that it gave is open, there is activity. */
  track<T extends object>(target: T): T {
    return new Proxy(target, {
      get: (object, name) => {
        const member: unknown = Reflect.get(object, name, object);
        if (typeof member !== 'function') return member;
        return (...args: unknown[]) => {
          const result: unknown = Reflect.apply(member, object, args);
          if (result instanceof Promise) {
            this.#pending += 1;
            const over = () => {
              this.#pending -= 1;
            };
            result.then(over, over);
          }
          return result;
        };
      },
    });
  }
}

/** A machine's time, moved by hand: the boot clock, the wall clock and the timers go together. */
export class FakeTime implements Clock, Timers {
  boot = 'boot-1';
  uptime = 100_000;
  wall = Date.UTC(2031, 4, 5, 6, 7, 8);
  /** The delays that were asked for, in order. */
  readonly delays: number[] = [];
  readonly #activity: PendingWork;
  readonly #timers = new Set<Timer>();
  #running = 0;
  #numbers = 0;
  /** Somebody lets time pass. */
  #passing = false;
  /** How much {@link lapse} waits for. */
  #lapses = 0;

  constructor(activity = new PendingWork()) {
    this.#activity = activity;
  }

  now(): Instant {
    return { boot: this.boot, uptime: this.uptime, wall: this.wall };
  }

  after(delay: number, run: () => void): () => void {
    this.delays.push(delay);
    return this.#arm(delay, run);
  }

  #arm(delay: number, run: () => void): () => void {
    // Whole milliseconds, as real timers and clocks have them.
    const timer = { at: this.#running + Math.ceil(delay), number: this.#numbers++, run };
    this.#timers.add(timer);
    return () => this.#timers.delete(timer);
  }

  sleep(delay: number, signal?: AbortSignal): Promise<void> {
    if (signal?.aborted) return Promise.resolve();
    return new Promise((resolve) => {
      const disarm = this.after(delay, resolve);
      signal?.addEventListener('abort', () => {
        disarm();
        resolve();
      });
    });
  }

  /**
   * Waits for something that takes so many ms beside everything else, such as a write on a slow card. Where nobody lets time
   * pass, a test would wait for itself: then it takes some turns of the event loop.
   */
  async lapse(ms: number, turns: number): Promise<void> {
    let isOver = ms <= 0;
    const disarm = this.#arm(ms, () => {
      isOver = true;
    });
    this.#lapses += 1;
    for (let left = turns; !isOver && left > 0; left -= this.#passing ? 0 : 1) await turn();
    this.#lapses -= 1;
    disarm();
  }

  /** How many timers run. */
  get armed(): number {
    return this.#timers.size;
  }

  /** Lets so many ms pass, however much is under way. */
  skip(ms: number): void {
    const end = this.#running + ms;
    for (let next = this.#next(end); next !== undefined; next = this.#next(end)) this.#fire(next);
    this.#move(end - this.#running);
  }

  /** Lets so many ms pass, and what is due happen; requests and writes that begin meanwhile take no time. */
  async pass(ms: number): Promise<void> {
    const end = this.#running + ms;
    await this.settle();
    this.#passing = true;
    for (let next = this.#next(end); next !== undefined; next = this.#next(end)) {
      this.#fire(next);
      await this.settle();
    }
    this.#move(end - this.#running);
    this.#passing = false;
    if (this.#lapses > 0) await this.settle();
  }

  /** The machine is suspended: the boot clock and the wall clock go on, the timers stand still. */
  suspend(ms: number): void {
    this.uptime += ms;
    this.wall += ms;
  }

  /** The machine was off for so long, and comes up with its wall clock at `wall`. Nothing that ran goes on. */
  reboot(wall: number): void {
    this.boot = `boot-${Number(this.boot.slice(5)) + 1}`;
    this.uptime = 20_000;
    this.wall = wall;
    this.#timers.clear();
  }

  /** Waits, in real time, until nothing is under way; while time passes, a lapse may be. */
  async settle(): Promise<void> {
    for (let quiet = 0; quiet < 3; quiet = this.#isQuiet ? quiet + 1 : 0) await turn();
  }

  get #isQuiet(): boolean {
    return this.#activity.isIdle && (this.#passing || this.#lapses === 0);
  }

  #next(end: number): Timer | undefined {
    const due = [...this.#timers].filter(({ at }) => at <= end);
    return due.sort((a, b) => a.at - b.at || a.number - b.number)[0];
  }

  #fire(timer: Timer): void {
    this.#move(Math.max(0, timer.at - this.#running));
    this.#timers.delete(timer);
    timer.run();
  }

  #move(ms: number): void {
    this.#running += ms;
    this.uptime += ms;
    this.wall += ms;
  }
}
