import { setImmediate as turn } from 'node:timers/promises';
import type { Clock, Instant, Timers } from '../../src/core/clock.ts';

interface Timer {
  /** On the clock that stops while the machine is suspended. */
  readonly at: number;
  readonly number: number;
  readonly run: () => void;
}

/** Counts the work outside of virtual time (requests, writes), so that time does not advance meanwhile. */
export class PendingWork {
  #pending = 0;

  get isIdle(): boolean {
    return this.#pending === 0;
  }

  /** Timers for tracked work: while it sleeps it is not pending, so that time can advance. */
  sleepless(timers: Timers): Timers {
    return {
      after: (delay, run) => timers.after(delay, run),
      sleep: async (delay, signal) => {
        this.#pending -= 1;
        await timers.sleep(delay, signal);
        this.#pending += 1;
      },
    };
  }

  /** The same object; each unsettled promise that it, or a plain object in it, returns counts as pending work. */
  track<T extends object>(target: T): T {
    return new Proxy(target, {
      get: (object, name) => {
        const member: unknown = Reflect.get(object, name, object);
        if (isPlainObject(member)) return this.track(member);
        if (typeof member !== 'function') return member;
        return (...args: unknown[]) => {
          const result: unknown = Reflect.apply(member, object, args);
          if (result instanceof Promise) {
            this.#pending += 1;
            const settled = () => {
              this.#pending -= 1;
            };
            result.then(settled, settled);
          }
          return result;
        };
      },
    });
  }
}

/** A machine's time, advanced manually: the boot clock, the wall clock and the timers move together. */
export class FakeTime implements Clock, Timers {
  boot = 'boot-1';
  uptime = 100_000;
  wall = Date.UTC(2031, 4, 5, 6, 7, 8);
  /** The requested delays, in order. */
  readonly delays: number[] = [];
  readonly #activity: PendingWork;
  readonly #timers = new Set<Timer>();
  #running = 0;
  #numbers = 0;
  /** Whether {@link pass} is running. */
  #passing = false;
  /** The number of pending {@link lapse} calls. */
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
    // Whole milliseconds, like real timers and clocks.
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
   * Waits for something that takes `ms` in parallel to everything else, such as a write on a slow SD card. If nothing
   * lets time pass, the test would wait for itself: then it takes `turns` turns of the event loop.
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

  /** The number of running timers. */
  get armed(): number {
    return this.#timers.size;
  }

  /** Lets `ms` pass, whatever is pending. */
  skip(ms: number): void {
    const end = this.#running + ms;
    for (let next = this.#next(end); next !== undefined; next = this.#next(end)) this.#fire(next);
    this.#move(end - this.#running);
  }

  /** Lets `ms` pass and runs what is due; requests and writes that begin meanwhile take no time. */
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

  /** Suspends the machine: the boot clock and the wall clock continue, the timers stop. */
  suspend(ms: number): void {
    this.uptime += ms;
    this.wall += ms;
  }

  /** The machine was off and boots with its wall clock at `wall`. No timer survives. */
  reboot(wall: number): void {
    this.boot = `boot-${Number(this.boot.slice(5)) + 1}`;
    this.uptime = 20_000;
    this.wall = wall;
    this.#timers.clear();
  }

  /** Waits, in real time, until nothing is pending; while time passes, lapses may be. */
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

function isPlainObject(value: unknown): value is object {
  return typeof value === 'object' && value !== null && Object.getPrototypeOf(value) === Object.prototype;
}
