import type { Timers } from '../../core/clock.ts';
import type { ResourceRecord } from '../records/records.ts';

/**
 * Runs tasks at most once in an interval: what comes meanwhile waits, and of several that do only the last is run. The interval
 * may double with each task, up to a longest one; after that long without a task it is the first one again.
 */
export class Throttle {
  readonly #timers: Timers;
  readonly #minInterval: number;
  readonly #maxInterval: number;
  #interval: number;
  #isThrottled = false;
  #pendingTask: (() => void) | null = null;
  #cancel: () => void = () => undefined;

  /** @param minInterval milliseconds, as is `longest` */
  constructor(timers: Timers, minInterval: number, maxInterval = minInterval) {
    this.#timers = timers;
    this.#minInterval = minInterval;
    this.#maxInterval = maxInterval;
    this.#interval = minInterval;
  }

  /** Whether the interval has doubled, and is not the first one again. */
  get isBackingOff(): boolean {
    return this.#interval > this.#minInterval;
  }

  run(task: () => void): void {
    if (this.#isThrottled) {
      this.#pendingTask = task;
      return;
    }
    this.#cancel();
    this.#isThrottled = true;
    this.#cancel = this.#timers.after(this.#interval, () => this.#resume());
    this.#interval = Math.min(2 * this.#interval, this.#maxInterval);
    task();
  }

  /** Drops the task that waits; the next one runs at once. */
  reset(): void {
    this.#cancel();
    this.#isThrottled = false;
    this.#pendingTask = null;
  }

  #resume(): void {
    const next = this.#pendingTask;
    this.reset();
    if (next !== null) this.run(next);
    else if (this.isBackingOff) {
      this.#cancel = this.#timers.after(this.#maxInterval, () => {
        this.#interval = this.#minInterval;
      });
    }
  }
}

/** A response, as multicast-dns takes it. */
export interface MdnsResponse {
  readonly answers: readonly ResourceRecord[];
  readonly additionals?: readonly ResourceRecord[];
}

/** How often the same response is multicast at most, in ms, as with avahi; a host that probes waits for 750. */
const RESPONSE_INTERVAL = 500;

/** Limits how often each response is sent: however often one host asks, all neighbours hear the answer. */
export class ResponseRateLimiter {
  readonly #timers: Timers;
  readonly #send: (response: MdnsResponse) => void;
  /** By what is answered: never more than the hub's own records. */
  readonly #throttles = new Map<string, Throttle>();

  constructor(timers: Timers, send: (response: MdnsResponse) => void) {
    this.#timers = timers;
    this.#send = send;
  }

  send(response: MdnsResponse): void {
    const key = response.answers.map(({ name, type }) => `${type} ${name}`).join();
    const throttle = this.#throttles.get(key) ?? new Throttle(this.#timers, RESPONSE_INTERVAL);
    this.#throttles.set(key, throttle);
    throttle.run(() => this.#send(response));
  }

  /** Drops the responses that wait: they are out of date. */
  clear(): void {
    for (const throttle of this.#throttles.values()) throttle.reset();
    this.#throttles.clear();
  }
}
