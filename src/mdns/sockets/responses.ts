import { foldCase, type ResourceRecord } from '../records/records.ts';
import type { MdnsResponse } from './rate-limits.ts';

/** What a query asks for. */
export interface Question {
  readonly name: string;
  /** A record's type, or `ANY`. */
  readonly type: string;
}

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

/** In seconds: a simple resolver is not informed of changes. */
const MAX_LEGACY_TTL = 10;

/**
 * Answers a question from the hub's records (RFC 6762 section 6), with those that the asker wants next (RFC 6763 section 12).
 * @returns null if none of them answers it
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
 * A response as simple resolvers know it from DNS, which ask from another port than mDNS's (RFC 6762 section 6.7): with their id
 * and questions, short-lived, and without the cache-flush bit.
 * @param multicast the response as it would be multicast
 */
export function legacyResponse(multicast: MdnsResponse, { id, questions }: Query): LegacyResponse {
  const plain = (record: ResourceRecord) => ({ ...record, ttl: Math.min(record.ttl, MAX_LEGACY_TTL), flush: false });
  const { answers, additionals = [] } = multicast;
  return { id, questions, answers: answers.map(plain), additionals: additionals.map(plain) };
}
