import type { Timers } from '../core/clock.ts';
import { Pace } from './pace.ts';
import type { ResourceRecord } from './records.ts';

/** A response, as multicast-dns takes it. */
export interface Answer {
  readonly answers: readonly ResourceRecord[];
  readonly additionals?: readonly ResourceRecord[];
}

/** So long the same answer is not multicast again, in ms, as with avahi; who probes waits for 750. */
const PAUSE = 500;

/** Gives answers at their pace: however often somebody asks, all neighbours hear the answer. */
export class Answers {
  readonly #timers: Timers;
  readonly #send: (answer: Answer) => void;
  /** By what is answered: never more than the hub's own records. */
  readonly #paces = new Map<string, Pace>();

  constructor(timers: Timers, send: (answer: Answer) => void) {
    this.#timers = timers;
    this.#send = send;
  }

  give(answer: Answer): void {
    const key = answer.answers.map(({ name, type }) => `${type} ${name}`).join();
    const pace = this.#paces.get(key) ?? new Pace(this.#timers, PAUSE);
    this.#paces.set(key, pace);
    pace.do(() => this.#send(answer));
  }

  /** What waits is out of date. */
  forget(): void {
    for (const pace of this.#paces.values()) pace.end();
    this.#paces.clear();
  }
}
