import type { RemoteInfo } from 'node:dgram';
import type { Timers } from '../../core/clock.ts';
import type { ResourceRecord } from '../records/records.ts';
import type { MdnsResponse } from './rate-limits.ts';

/** A query, as far as a response to a simple resolver repeats it. */
export interface Query {
  readonly id: number;
  readonly questions: readonly object[];
}

/** A response to one asker alone. */
export interface LegacyResponse extends Query {
  readonly answers: readonly ResourceRecord[];
  readonly additionals: readonly ResourceRecord[];
}

/** The port that every mDNS implementation sends from. */
const PORT = 5353;
/** Seconds: a simple resolver is not informed of changes. */
const MAX_TTL = 10;
/** Responses in an interval in ms: the address that one is sent to may be forged. */
const MAX_RESPONSES = 10;
const INTERVAL = 1000;

/**
 * Answers simple resolvers, which ask from another port than mDNS's and take an answer as they know it from DNS (RFC 6762
 * section 6.7): sent to them alone, with their id and question, short-lived, and without the cache-flush bit.
 */
export class LegacyUnicast implements Disposable {
  readonly #timers: Timers;
  #asked: { readonly query: Query; readonly by: RemoteInfo } | null = null;
  #sent = 0;
  #cancel: () => void = () => undefined;

  constructor(timers: Timers) {
    this.#timers = timers;
  }

  /** A query has come; the responses from now on answer it. */
  heard(query: Query, by: RemoteInfo): void {
    this.#asked = by.port === PORT ? null : { query, by };
  }

  /**
   * The response to send in place of one that would be multicast, and to whom: nobody if too many ask.
   * @returns null if the response is to be multicast
   */
  responseWith(multicast: MdnsResponse): { readonly response: LegacyResponse; readonly to: RemoteInfo | null } | null {
    if (this.#asked === null) return null;
    const { query, by } = this.#asked;
    if (this.#sent === 0) {
      this.#cancel = this.#timers.after(INTERVAL, () => {
        this.#sent = 0;
      });
    }
    this.#sent += 1;
    const { answers, additionals = [] } = multicast;
    const { id, questions } = query;
    const response = { id, questions, answers: answers.map(plain), additionals: additionals.map(plain) };
    return { response, to: this.#sent > MAX_RESPONSES ? null : by };
  }

  [Symbol.dispose](): void {
    this.#cancel();
  }
}

function plain(record: ResourceRecord): ResourceRecord {
  return { ...record, ttl: Math.min(record.ttl, MAX_TTL), flush: false };
}
