import type { RemoteInfo } from 'node:dgram';
import type { Timers } from '../core/clock.ts';
import type { Answer } from './answers.ts';
import type { ResourceRecord } from './records.ts';

/** A query, as far as an answer to a simple resolver repeats it. */
export interface Query {
  readonly id: number;
  readonly questions: readonly object[];
}

/** A response to one asker alone. */
export interface LegacyResponse extends Query {
  readonly answers: readonly ResourceRecord[];
  readonly additionals: readonly ResourceRecord[];
}

/** What every speaker of mDNS sends from. */
const PORT = 5353;
/** Seconds: a simple resolver hears of no change. */
const LONGEST_TTL = 10;
/** So many answers in one while, in ms: whom one goes to is anybody's claim. */
const MOST_ANSWERS = 10;
const WHILE = 1000;

/**
 * Answers simple resolvers, which ask from another port than mDNS's and take an answer as they know it from DNS (RFC 6762
 * section 6.7): sent to them alone, with their id and question, short-lived, and without the cache-flush bit.
 */
export class LegacyUnicast implements Disposable {
  readonly #timers: Timers;
  #asked: { readonly query: Query; readonly by: RemoteInfo } | null = null;
  #given = 0;
  #cancel: () => void = () => undefined;

  constructor(timers: Timers) {
    this.#timers = timers;
  }

  /** A query has come; what is answered from now on answers it. */
  heard(query: Query, by: RemoteInfo): void {
    this.#asked = by.port === PORT ? null : { query, by };
  }

  /**
   * What is to be sent, and to whom: nobody where too many ask.
   * @returns null where the answer is multicast as usual
   */
  responseWith(answer: Answer): { readonly response: LegacyResponse; readonly to: RemoteInfo | null } | null {
    if (this.#asked === null) return null;
    const { query, by } = this.#asked;
    if (this.#given === 0) {
      this.#cancel = this.#timers.after(WHILE, () => {
        this.#given = 0;
      });
    }
    this.#given += 1;
    const { answers, additionals = [] } = answer;
    const { id, questions } = query;
    const response = { id, questions, answers: answers.map(plain), additionals: additionals.map(plain) };
    return { response, to: this.#given > MOST_ANSWERS ? null : by };
  }

  [Symbol.dispose](): void {
    this.#cancel();
  }
}

function plain(record: ResourceRecord): ResourceRecord {
  return { ...record, ttl: Math.min(record.ttl, LONGEST_TTL), flush: false };
}
