import { ipv6Bytes } from '../../system/addresses.ts';
import { foldCase, type ResourceRecord } from './records.ts';

/** A record of a received packet; the type of its data depends on the record's type. */
export interface ReceivedRecord {
  readonly name: string;
  readonly type: string;
  readonly ttl?: number;
  readonly data?: unknown;
}

/** Where records were received: in a response, or in the authority section of a probe. */
export type RecordSource = 'response' | 'probe';

type RecordData = Pick<ReceivedRecord, 'type' | 'data'>;

/** The numbers of the record types: RFC 6762 section 8.2 sorts by them. */
const TYPE_NUMBERS: Readonly<Record<string, number>> = { A: 1, PTR: 12, TXT: 16, AAAA: 28, SRV: 33 };

/** Whether two records have the same type and data. */
export function sameData(a: RecordData, b: RecordData): boolean {
  const [left, right] = [wireData(a), wireData(b)];
  return a.type === b.type && left !== null && right !== null && left.equals(right);
}

/** Whether a record's data can be read; a record whose data can't be read claims nothing. */
export function isReadable(record: RecordData): boolean {
  return wireData(record) !== null;
}

/**
 * Compares the records of two hosts for one name as in RFC 6762 section 8.2.1: sorted, pair by pair, first by type and
 * then by data. If one set is the beginning of the other, the longer set is greater.
 * @returns positive if `theirs` is greater, negative if `mine` is
 */
export function compareRecordSets(theirs: readonly RecordData[], mine: readonly ResourceRecord[]): number {
  const [left, right] = [sortedWireData(theirs), sortedWireData(mine)];
  for (const [index, one] of left.entries()) {
    const other = right[index];
    const difference = other === undefined ? 1 : Buffer.compare(one, other);
    if (difference !== 0) return difference;
  }
  return left.length - right.length;
}

function sortedWireData(records: readonly RecordData[]): readonly Buffer[] {
  return records
    .flatMap((record) => {
      const data = wireData(record);
      return data === null ? [] : Buffer.concat([Buffer.from([TYPE_NUMBERS[record.type] ?? 0]), data]);
    })
    .sort(Buffer.compare);
}

/**
 * A record's data in wire format, with names in lower case and uncompressed; null if the type or data can't be
 * compared.
 */
function wireData({ type, data }: RecordData): Buffer | null {
  if (type === 'A' && typeof data === 'string') return Buffer.from(data.split('.').map(Number));
  if (type === 'AAAA' && typeof data === 'string') return ipv6Bytes(data);
  if (type === 'TXT') return txtBytes(data);
  if (type === 'PTR' && typeof data === 'string') return nameBytes(data);
  if (type !== 'SRV' || typeof data !== 'object' || data === null || !('port' in data && 'target' in data)) return null;
  const { priority = 0, weight = 0, port, target } = data as Readonly<Record<string, unknown>>;
  return Buffer.concat([...[priority, weight, port].map(uint16Bytes), nameBytes(String(target))]);
}

function nameBytes(name: string): Buffer {
  return Buffer.concat([...foldCase(name).split('.').map(lengthPrefixed), Buffer.alloc(1)]);
}

function txtBytes(data: unknown): Buffer | null {
  const strings = Array.isArray(data) ? data : [data];
  if (!strings.every((one) => Buffer.isBuffer(one))) return null;
  return Buffer.concat(strings.map(lengthPrefixed));
}

function lengthPrefixed(text: string | Buffer): Buffer {
  const bytes = Buffer.from(text);
  return Buffer.concat([Buffer.from([bytes.length]), bytes]);
}

function uint16Bytes(number: unknown): Buffer {
  const bytes = Buffer.alloc(2);
  bytes.writeUInt16BE(Number(number) & 0xffff);
  return bytes;
}
