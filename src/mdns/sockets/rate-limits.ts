import type { Timers } from '../../core/clock.ts';
import type { ResourceRecord } from '../records/records.ts';

/**
 * Runs at most one task per interval. Further tasks wait; if several wait, only the last one runs. The interval may
 * double with each task, up to a maximum. After that long without a task, it is reset to the minimum.
 */
export class Throttle {
  readonly #timers: Timers;
  readonly #minInterval: number;
  readonly #maxInterval: number;
  #interval: number;
  #isThrottled = false;
  #pendingTask: (() => void) | null = null;
  #cancel: () => void = () => undefined;

  /** @param minInterval the first interval, in ms @param maxInterval in ms; by default the interval does not grow */
  constructor(timers: Timers, minInterval: number, maxInterval = minInterval) {
    this.#timers = timers;
    this.#minInterval = minInterval;
    this.#maxInterval = maxInterval;
    this.#interval = minInterval;
  }

  /** Whether the interval has grown and was not reset yet. */
  get isBackingOff(): boolean {
    return this.#interval > this.#minInterval;
  }

  /** Runs the task now, or at the end of the interval. */
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

  /** Drops the waiting task, and lets the next one run at once. */
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

/** A response in the format of multicast-dns. */
export interface MdnsResponse {
  readonly answers: readonly ResourceRecord[];
  readonly additionals?: readonly ResourceRecord[];
}

/** The shortest time between two identical multicast responses, in ms, as in avahi; a probing host waits for 750 ms. */
const RESPONSE_INTERVAL = 500;

/**
 * Limits how often each response is sent, because one host's queries cause responses that all devices on the network
 * receive.
 */
export class ResponseRateLimiter {
  readonly #timers: Timers;
  readonly #send: (response: MdnsResponse) => void;
  /** By the records of the response: their number is limited by the hub's own records. */
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

  /** Drops the waiting responses, because they are out of date. */
  clear(): void {
    for (const throttle of this.#throttles.values()) throttle.reset();
    this.#throttles.clear();
  }
}
