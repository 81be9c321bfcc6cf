import type { RemoteInfo } from 'node:dgram';
import type { EventEmitter } from 'node:events';
import Bonjour from 'bonjour-service';
import type { Timers } from '../../core/clock.ts';
import { Failure } from '../../core/failure.ts';
import { monotonicNow } from '../../system/clock.ts';
import { TokenBuckets } from '../../system/limits/token-buckets.ts';
import type { ReceivedRecord, RecordSource } from '../records/record-data.ts';
import { foldCase, type ResourceRecord } from '../records/records.ts';
import { type MulticastInterface, MulticastSocket, type MulticastSocketOptions } from './multicast-socket.ts';
import { type MdnsResponse, ResponseRateLimiter } from './rate-limits.ts';

/** Multicast DNS on one link, or on several combined links. */
export interface MdnsLink extends AsyncDisposable {
  /** Sets the records with which queries are answered from now on. */
  serve(records: readonly ResourceRecord[]): void;
  /**
   * Multicasts a response; resolves when the operating system has accepted it.
   * @throws Error of the socket, for example if the network is down
   */
  respond(records: readonly ResourceRecord[]): Promise<void>;
  /**
   * Multicasts a probe (RFC 6762 section 8.1): an ANY query for the records' names, with these records in its authority
   * section.
   * @throws Error of the socket
   */
  probe(records: readonly ResourceRecord[]): Promise<void>;
  /**
   * Calls `listener` with the records of each response and each probe (from its authority section) on the link,
   * including the hub's own.
   * @returns a function that removes the listener
   */
  onRecords(listener: (records: readonly ReceivedRecord[], how: RecordSource) => void): () => void;
}

/** Options of {@link openMdnsLink}. */
export interface MdnsLinkOptions extends MulticastSocketOptions {
  readonly timers: Timers;
}

interface ReceivedPacket {
  readonly answers: readonly ReceivedRecord[];
  readonly additionals: readonly ReceivedRecord[];
  readonly authorities: readonly ReceivedRecord[];
}

type SendCallback = (error?: Error | null) => void;

/** The part of multicast-dns that is used here. */
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

/** The AA flag (RFC 1035 section 4.1.1). */
const AUTHORITATIVE_ANSWER = 0x400;
/** The port that every mDNS implementation sends from. */
const MDNS_PORT = 5353;
/** Limits unicast responses to all addresses together, because source addresses may be forged; interval in ms. */
const LEGACY_RESPONSE_LIMIT = { burst: 10, interval: 100 };

/**
 * Opens a link. bonjour-service is used only for the wire format, not for publishing: it announces the addresses of all
 * interfaces, never updates them, and after a lost probe sends a goodbye for the winner's name.
 * @throws Failure `port_unavailable` if the port can't be opened, or if the machine does not have the address
 */
export async function openMdnsLink(target: MulticastInterface, options: MdnsLinkOptions): Promise<MdnsLink> {
  const { onError, timers } = options;
  const socket = new MulticastSocket(target, options);
  // A private property, but the only way to the multicast-dns instance.
  const mdns: MulticastDns = new Bonjour(socket.options)['server'].mdns;
  try {
    await socket.bound;
  } catch (cause) {
    await destroyAsync(mdns);
    const where = target.ipv4 === null ? `over IPv6 on ${target.interface}` : `at ${target.ipv4}`;
    throw new Failure('port_unavailable', `can't use mDNS (UDP port 5353) ${where}`, { cause });
  }

  let served: readonly ResourceRecord[] = [];
  const limiter = new ResponseRateLimiter(timers, (packet) => mdns.respond(packet, (error) => error && onError(error)));
  const legacy = new TokenBuckets();
  function respondLegacy(response: LegacyResponse, to: RemoteInfo): void {
    const bucket = legacy.refill('all', LEGACY_RESPONSE_LIMIT, monotonicNow());
    if (bucket.tokens < 1) return;
    bucket.tokens -= 1;
    // A resolver that is gone by now is not an error of the link.
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
    respond: (answers) => sendAsync((sent) => mdns.respond({ answers }, sent)),
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

/** A question of a query. */
interface Question {
  readonly name: string;
  /** A record type, or `ANY`. */
  readonly type: string;
}

/** The part of a query that a legacy response repeats. */
interface Query {
  readonly id: number;
  readonly questions: readonly Question[];
}

/** A unicast response to a simple resolver (RFC 6762 section 6.7). */
interface LegacyResponse extends Query {
  readonly answers: readonly ResourceRecord[];
  readonly additionals: readonly ResourceRecord[];
}

/** In seconds. Short, because a simple resolver does not receive later announcements. */
const MAX_LEGACY_TTL = 10;

/**
 * The response to a question from the hub's records (RFC 6762 section 6), with the additional records that the querier
 * needs next (RFC 6763 section 12).
 * @returns null if no record matches
 */
export function responseTo({ name, type }: Question, records: readonly ResourceRecord[]): MdnsResponse | null {
  const find = (owner: string, ...types: readonly string[]) =>
    records.filter((record) => types.includes(record.type) && foldCase(record.name) === foldCase(owner));
  if (type === 'ANY') {
    const answers = records.filter((record) => foldCase(record.name) === foldCase(name));
    return answers.length === 0 ? null : { answers };
  }
  const answers = find(name, type);
  if (answers.length === 0) return null;
  const instances = answers.flatMap((record) => (record.type === 'PTR' ? [String(record.data)] : []));
  const services = instances.flatMap((instance) => find(instance, 'SRV', 'TXT'));
  const hosts = services.flatMap(({ data }) => (typeof data === 'object' && 'target' in data ? [data.target] : []));
  const addresses = [...new Set(hosts)].flatMap((host) => find(host, 'A', 'AAAA'));
  return { answers, additionals: [...services, ...addresses] };
}

/**
 * The unicast response to a simple resolver, which sends queries from a port other than 5353 (RFC 6762 section 6.7):
 * with the query's id and questions, short TTLs, and no cache-flush bit.
 * @param multicast the response as it would be multicast
 */
function legacyResponse(multicast: MdnsResponse, { id, questions }: Query): LegacyResponse {
  const plain = (record: ResourceRecord) => ({ ...record, ttl: Math.min(record.ttl, MAX_LEGACY_TTL), flush: false });
  const { answers, additionals = [] } = multicast;
  return { id, questions, answers: answers.map(plain), additionals: additionals.map(plain) };
}
