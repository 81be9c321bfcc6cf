import { describe, expect, it } from 'vitest';
import { detectConflict, servicePort } from '../../src/mdns/conflicts/conflict-detection.ts';
import { compareRecordSets, type ReceivedRecord, sameData } from '../../src/mdns/records/record-data.ts';
import { uniqueRecords } from '../../src/mdns/records/records.ts';

const OWN = uniqueRecords({
  instanceName: 'Cellar hub',
  id: 'aa11',
  host: 'aa11.local',
  httpsPort: 8443,
  txt: {},
  addresses: [
    { family: 'IPv4', address: '10.0.0.5' },
    { family: 'IPv4', address: '10.0.0.6' },
    { family: 'IPv6', address: 'fd00::5' },
  ],
});
const INSTANCE = 'Cellar hub._latchkey._tcp.local';

describe('conflicts with responses of other hosts', () => {
  it.each<[what: string, records: ReceivedRecord[], expected: 'won' | 'lost' | null]>([
    ['is its own', [...OWN], null],
    ['is its own, in part', OWN.slice(3), null],
    ['has another service of its name with a greater port', [srv(9000, 'aa00.local')], 'lost'],
    ['has another service of its name with a lesser port', [srv(8442, 'zz99.local')], 'won'],
    ['has another service of its name on a host that is greater', [srv(8443, 'aa22.local')], 'lost'],
    ['has its host at another, greater address', [host('10.0.0.7')], 'lost'],
    ['has its host at another, lesser address', [host('10.0.0.4')], 'won'],
    ['has its host at an address between its own', [host('10.0.0.5'), host('10.0.0.55')], 'lost'],
    ['has its host at an IPv6 address of somebody else', [host('fd00:0:0::9')], 'lost'],
    ['has its host at its own IPv6 address, written otherwise', [host('FD00:0::0:5')], null],
    ['has its host at an address that can not be read', [{ ...host('10.0.0.7'), data: 7 }], null],
    ['has only another text', [{ name: INSTANCE, type: 'TXT', ttl: 120, data: [Buffer.from('id=zz')] }], null],
  ])('the hub finds a conflict, or none, in a response that %s', (_, records, expected) => {
    const conflict = detectConflict(OWN, records, 'response', () => false);
    expect(conflict && (conflict.lost ? 'lost' : 'won')).toBe(expected);
  });

  it('a conflict names the addresses that the other host announces, without those of this machine', () => {
    const records = [host('10.0.0.5'), host('10.0.0.7'), host('10.0.0.8'), host('fd00::9'), srv(8443, 'aa11.local')];
    const conflict = detectConflict(OWN, records, 'response', ({ data }) => data === '10.0.0.8');
    expect(conflict).toMatchObject({ name: 'aa11.local', addresses: ['10.0.0.7', 'fd00::9'] });
  });
});

describe('the comparison of two record sets', () => {
  it('record sets are compared by type and then by data, and the longer set is greater', () => {
    const [first, second, third] = [host('10.0.0.5'), host('10.0.0.6'), host('fd00::1')];
    const ownAddress = uniqueRecords({ ...SERVICE, addresses: [{ family: 'IPv4', address: '10.0.0.6' }] }).slice(2);
    expect(compareRecordSets([first], ownAddress)).toBeLessThan(0);
    expect(compareRecordSets([second], ownAddress)).toBe(0);
    expect(compareRecordSets([third], ownAddress)).toBeGreaterThan(0);
    expect(compareRecordSets([third, second], ownAddress)).toBeGreaterThan(0);
  });

  it('record data is compared as bytes, with names in lower case', () => {
    expect(sameData(srv(8443, 'AA11.local'), srv(8443, 'aa11.local'))).toBe(true);
    expect(sameData({ type: 'A', data: '10.0.0.1' }, { type: 'TXT', data: Buffer.from([10, 0, 0, 1]) })).toBe(false);
  });
});

const SERVICE = { instanceName: 'Cellar hub', id: 'aa11', host: 'aa11.local', httpsPort: 8443, txt: {} };

it('the port of a service is taken from an SRV record for its host', () => {
  expect(servicePort([host('10.0.0.7'), srv(9000, 'aa22.local'), srv(9443, 'AA11.local')], 'aa11.local')).toBe(9443);
  expect(servicePort([host('10.0.0.7'), { name: INSTANCE, type: 'SRV', data: null }], 'aa11.local')).toBeNull();
});

function srv(port: number, target: string): ReceivedRecord {
  return { name: INSTANCE, type: 'SRV', ttl: 120, data: { priority: 0, weight: 0, port, target } };
}

function host(data: string): ReceivedRecord {
  return { name: 'aa11.local', type: data.includes(':') ? 'AAAA' : 'A', ttl: 120, data };
}
