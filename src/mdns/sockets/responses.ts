import { foldCase, type ResourceRecord } from '../records/records.ts';
import type { MdnsResponse } from './rate-limits.ts';

/** What a query asks for. */
export interface Question {
  readonly name: string;
  /** A record's type, or `ANY`. */
  readonly type: string;
}

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
