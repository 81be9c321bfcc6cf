import type { RemoteInfo } from 'node:dgram';
import type { EventEmitter } from 'node:events';
import Bonjour from 'bonjour-service';
import type { Timers } from '../../core/clock.ts';
import { Failure } from '../../core/failure.ts';
import { monotonicNow } from '../../system/clock.ts';
import { TokenBuckets } from '../../system/limits/token-bucket.ts';
import type { ReceivedRecord, RecordSource } from '../records/record-data.ts';
import type { ResourceRecord } from '../records/records.ts';
import { type MulticastInterface, MulticastSocket, type MulticastSocketOptions } from './multicast-socket.ts';
import { type MdnsResponse, ResponseRateLimiter } from './rate-limits.ts';
import { type LegacyResponse, legacyResponse, type Query, responseTo } from './responses.ts';

/** The multicast DNS of one link, or of several that belong together. */
export interface MdnsLink extends AsyncDisposable {
  /** Answers queries with these records, and with no others, from now on. */
  serve(records: readonly ResourceRecord[]): void;
  /**
   * Multicasts a response; resolves when the operating system has taken it.
   * @throws Error as the socket gives it: the network may be away
   */
  respond(answers: readonly ResourceRecord[]): Promise<void>;
  /**
   * Multicasts a probe (RFC 6762 section 8.1): a query for everything under the records' names, with the records that
   * are going to be announced in its authority section.
   * @throws Error as the socket gives it
   */
  probe(records: readonly ResourceRecord[]): Promise<void>;
  /**
   * Listens to who claims names on the link, the hub itself included: by a response, or by a probe (what its authority
   * section has). The function it returns ends that.
   */
  onRecords(listener: (records: readonly ReceivedRecord[], how: RecordSource) => void): () => void;
}

export interface MdnsLinkOptions extends MulticastSocketOptions {
  readonly timers: Timers;
}

interface ReceivedPacket {
  readonly answers: readonly ReceivedRecord[];
  readonly additionals: readonly ReceivedRecord[];
  readonly authorities: readonly ReceivedRecord[];
}

type SendCallback = (error?: Error | null) => void;

/** What multicast-dns offers. */
interface MulticastDns extends EventEmitter {
  respond(packet: MdnsResponse, sent: SendCallback): void;
  send(
    packet: LegacyResponse & { readonly type: 'response'; readonly flags: number },
    to: RemoteInfo,
    sent: SendCallback,
  ): void;
  query(packet: { questions: readonly object[]; authorities: readonly ResourceRecord[] }, sent: SendCallback): void;
  destroy(closed: () => void): void;
}

/** RFC 1035 section 4.1.1: AA. */
const AUTHORITATIVE_ANSWER = 0x400;
/** The port that every mDNS implementation sends from. */
const MDNS_PORT = 5353;
/** Responses to single addresses, which may be forged: so many at once of all of them together, and then one in so many ms. */
const LEGACY_RESPONSE_LIMIT = { burst: 10, interval: 100 };

/**
 * Opens a link. bonjour-service gives the wire format alone. Its own publishing is not used: it announces every interface's
 * address, never a new one, and the loser of a probe says goodbye in the winner's name.
 * @throws Failure `port_unavailable` where the port can't be had, or the address is none of this machine's
 */
export async function openMdnsLink(end: MulticastInterface, options: MdnsLinkOptions): Promise<MdnsLink> {
  const { onError, timers } = options;
  const socket = new MulticastSocket(end, options);
  // Private there, and the one way to the multicast-dns inside it.
  const mdns: MulticastDns = new Bonjour(socket.options)['server'].mdns;
  try {
    await socket.bound;
  } catch (cause) {
    await destroyAsync(mdns);
    const where = end.ipv4 === null ? `over IPv6 on ${end.interface}` : `at ${end.ipv4}`;
    throw new Failure('port_unavailable', `can't speak mDNS (UDP port 5353) ${where}`, { cause });
  }

  let served: readonly ResourceRecord[] = [];
  const limiter = new ResponseRateLimiter(timers, (packet) => mdns.respond(packet, (error) => error && onError(error)));
  const legacy = new TokenBuckets();
  function respondLegacy(response: LegacyResponse, to: RemoteInfo): void {
    const bucket = legacy.refill('all', LEGACY_RESPONSE_LIMIT, monotonicNow());
    if (bucket.tokens < 1) return;
    bucket.tokens -= 1;
    // Who has gone meanwhile is no error of the link.
    mdns.send({ ...response, type: 'response', flags: AUTHORITATIVE_ANSWER }, to, () => undefined);
  }
  mdns.on('query', (query: Query, from: RemoteInfo) => {
    for (const question of query.questions) {
      const response = responseTo(question, served);
      if (response === null) continue;
      if (from.port !== MDNS_PORT) respondLegacy(legacyResponse(response, query), from);
      else limiter.send(response);
    }
  });
  return {
    serve(records) {
      served = records;
      limiter.clear();
    },
    respond: (said) => sendAsync((sent) => mdns.respond({ answers: said }, sent)),
    probe(authorities) {
      const names = new Set(authorities.map(({ name }) => name));
      const questions = [...names].map((name) => ({ name, type: 'ANY' }));
      return sendAsync((sent) => mdns.query({ questions, authorities }, sent));
    },
    onRecords(listener) {
      const onResponse = ({ answers, additionals }: ReceivedPacket) =>
        listener([...answers, ...additionals], 'response');
      const onQuery = ({ authorities }: ReceivedPacket) => listener(authorities, 'probe');
      mdns.on('response', onResponse).on('query', onQuery);
      return () => mdns.off('response', onResponse).off('query', onQuery);
    },
    [Symbol.asyncDispose]: () => {
      limiter.clear();
      return destroyAsync(mdns);
    },
  };
}

function sendAsync(send: (sent: SendCallback) => void): Promise<void> {
  return new Promise((resolve, reject) => send((error) => (error ? reject(error) : resolve())));
}

function destroyAsync(mdns: MulticastDns): Promise<void> {
  return new Promise((resolve) => mdns.destroy(resolve));
}
