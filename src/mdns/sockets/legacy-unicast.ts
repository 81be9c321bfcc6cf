import type { RemoteInfo } from 'node:dgram';
import type { Timers } from '../../core/clock.ts';
import type { ResourceRecord } from '../records/records.ts';
import type { MdnsResponse } from './rate-limits.ts';
import type { Question } from './responses.ts';

/** A query, as far as a response to a simple resolver repeats it. */
export interface Query {
  readonly id: number;
  readonly questions: readonly Question[];
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

/** Whether a query from there is a simple resolver's, see {@link LegacyUnicast}. */
export function isLegacy({ port }: RemoteInfo): boolean {
  return port !== PORT;
}

/**
 * Answers simple resolvers, which ask from another port than mDNS's and take an answer as they know it from DNS (RFC 6762
 * section 6.7): sent to them alone, with their id and question, short-lived, and without the cache-flush bit. If too many ask,
 * nothing is sent.
 */
export class LegacyUnicast implements Disposable {
  readonly #timers: Timers;
  readonly #send: (response: LegacyResponse, to: RemoteInfo) => void;
  #sent = 0;
  #cancel: () => void = () => undefined;

  constructor(timers: Timers, send: (response: LegacyResponse, to: RemoteInfo) => void) {
    this.#timers = timers;
    this.#send = send;
  }

  /** @param multicast the response as it would be multicast */
  respond({ answers, additionals = [] }: MdnsResponse, { id, questions }: Query, to: RemoteInfo): void {
    if (this.#sent === 0) {
      this.#cancel = this.#timers.after(INTERVAL, () => {
        this.#sent = 0;
      });
    }
    this.#sent += 1;
    if (this.#sent > MAX_RESPONSES) return;
    this.#send({ id, questions, answers: answers.map(plain), additionals: additionals.map(plain) }, to);
  }

  [Symbol.dispose](): void {
    this.#cancel();
  }
}

function plain(record: ResourceRecord): ResourceRecord {
  return { ...record, ttl: Math.min(record.ttl, MAX_TTL), flush: false };
}
