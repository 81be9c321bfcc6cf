import {
  compareRecordSets,
  isReadable,
  type ReceivedRecord,
  type RecordSource,
  sameData,
} from '../records/record-data.ts';
import { foldCase, type ResourceRecord } from '../records/records.ts';

/** A name of the hub's own that another host claims too. */
export interface NameClaim {
  /** In lower case. */
  readonly name: string;
  /** Where the other one says that the host of this name is; empty where the name is a service's. */
  readonly addresses: readonly string[];
}

/** A claim, compared with the hub's own. */
export interface Conflict extends NameClaim {
  /** Whether the other one's data is greater, and the name with it (RFC 6762 sections 8.2 and 9). */
  readonly lost: boolean;
}

/**
 * The first of the hub's own names under which another host has other data. A goodbye (TTL 0) is no claim: a hub that
 * restarts hears its own. Only SRV and address records count; a TXT record comes with its SRV.
 * @param isOurs whether the hub itself has said this, or might: its own packets come back to it, late on a busy machine, and a
 *   router may repeat to one network what the hub said in another
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
    // A response need not have all that its sender knows: only what is of one type can be compared.
    const compared = (records: readonly ReceivedRecord[]) =>
      how === 'probe' ? records : records.filter(({ type }) => type === foreign.type);
    const against = compared(mine) as readonly ResourceRecord[];
    const addresses = others.flatMap(({ type, data }) => (type === 'SRV' ? [] : [String(data)]));
    return { name, addresses, lost: compareRecordSets(compared(theirs), against) > 0 };
  }
  return null;
}

/**
 * Whether another host takes the hub's records back, or lets them expire too soon (RFC 6762 section 6.6): it was heard with
 * less than half of its time to live.
 */
export function hasReducedTtl(own: readonly ResourceRecord[], received: readonly ReceivedRecord[]): boolean {
  return own.some((mine) =>
    received.some(
      (record) =>
        foldCase(record.name) === foldCase(mine.name) && (record.ttl ?? 0) < mine.ttl / 2 && sameData(record, mine),
    ),
  );
}

/** The port of a service on this host, as an SRV record among these has it; null where there is none. */
export function servicePort(received: readonly ReceivedRecord[], host: string): number | null {
  for (const { type, data } of received) {
    if (type !== 'SRV' || typeof data !== 'object' || data === null || !('port' in data && 'target' in data)) continue;
    if (typeof data.port === 'number' && foldCase(String(data.target)) === foldCase(host)) return data.port;
  }
  return null;
}
