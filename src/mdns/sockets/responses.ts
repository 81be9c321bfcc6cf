import { foldCase, type ResourceRecord } from '../records/records.ts';
import type { MdnsResponse } from './rate-limits.ts';

/** A question of a query. */
export interface Question {
  readonly name: string;
  /** A record type, or `ANY`. */
  readonly type: string;
}

/** The part of a query that a legacy response repeats. */
export interface Query {
  readonly id: number;
  readonly questions: readonly Question[];
}

/** A unicast response to a simple resolver (RFC 6762 section 6.7). */
export interface LegacyResponse extends Query {
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
export function legacyResponse(multicast: MdnsResponse, { id, questions }: Query): LegacyResponse {
  const plain = (record: ResourceRecord) => ({ ...record, ttl: Math.min(record.ttl, MAX_LEGACY_TTL), flush: false });
  const { answers, additionals = [] } = multicast;
  return { id, questions, answers: answers.map(plain), additionals: additionals.map(plain) };
}
