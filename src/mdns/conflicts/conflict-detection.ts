import {
  compareRecordSets,
  isReadable,
  type ReceivedRecord,
  type RecordSource,
  sameData,
} from '../records/record-data.ts';
import { foldCase, type ResourceRecord } from '../records/records.ts';

/** Another host's claim to one of the hub's names. */
export interface NameClaim {
  /** In lower case. */
  readonly name: string;
  /** The addresses that the other host announces for this host name; empty for a service's name. */
  readonly addresses: readonly string[];
}

/** A claim, compared with the hub's own records. */
interface Conflict extends NameClaim {
  /** Whether the other host's data is greater, so that it wins the name (RFC 6762 sections 8.2 and 9). */
  readonly lost: boolean;
}

/**
 * The first of the hub's names for which another host has different data; null if there is none. A goodbye (TTL 0) is
 * not a claim: a hub that restarts receives its own. Only SRV and address records count; a TXT record accompanies its
 * SRV record.
 * @param isOurs whether the hub itself has sent this record, or may have: it receives its own packets, late on a busy
 * machine, and a router may repeat them from one network to another
 */
export function detectConflict(
  own: readonly ResourceRecord[],
  received: readonly ReceivedRecord[],
  how: RecordSource,
  isOurs: (record: ReceivedRecord) => boolean,
): Conflict | null {
  for (const name of new Set(own.map((record) => foldCase(record.name)))) {
    const mine = own.filter((record) => foldCase(record.name) === name);
    const theirs = received.filter(
      (record) => foldCase(record.name) === name && record.ttl !== 0 && isReadable(record),
    );
    const others = theirs.filter(
      (record) =>
        ['SRV', 'A', 'AAAA'].includes(record.type) && !mine.some((one) => sameData(one, record)) && !isOurs(record),
    );
    const [foreign] = others;
    if (foreign === undefined) continue;
    // A response may contain only some of its sender's records, so only records of one type can be compared.
    const compared = (records: readonly ReceivedRecord[]) =>
      how === 'probe' ? records : records.filter(({ type }) => type === foreign.type);
    const against = compared(mine) as readonly ResourceRecord[];
    const addresses = others.flatMap(({ type, data }) => (type === 'SRV' ? [] : [String(data)]));
    return { name, addresses, lost: compareRecordSets(compared(theirs), against) > 0 };
  }
  return null;
}

/**
 * Whether another host withdraws the hub's records, or makes them expire too soon (RFC 6762 section 6.6): it sent one
 * of them with less than half of its TTL.
 */
export function hasReducedTtl(own: readonly ResourceRecord[], received: readonly ReceivedRecord[]): boolean {
  return own.some((mine) =>
    received.some(
      (record) =>
        foldCase(record.name) === foldCase(mine.name) && (record.ttl ?? 0) < mine.ttl / 2 && sameData(record, mine),
    ),
  );
}

/** The port of a service on this host, from an SRV record among these; null if there is none. */
export function servicePort(received: readonly ReceivedRecord[], host: string): number | null {
  for (const { type, data } of received) {
    if (type !== 'SRV' || typeof data !== 'object' || data === null || !('port' in data && 'target' in data)) continue;
    if (typeof data.port === 'number' && foldCase(String(data.target)) === foldCase(host)) return data.port;
  }
  return null;
}
