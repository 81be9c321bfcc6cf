import { describe, expect, it } from 'vitest';
import { instancePointer, uniqueRecords } from '../../src/mdns/records/records.ts';
import { responseTo } from '../../src/mdns/sockets/mdns-link.ts';

const [srv, txt, ...addresses] = uniqueRecords({
  instanceName: 'Cellar hub',
  id: '4f2a9c',
  host: '4f2a9c.local',
  httpsPort: 8443,
  txt: {},
  addresses: [
    { family: 'IPv4', address: '10.0.0.1' },
    { family: 'IPv6', address: 'fd00::1' },
  ],
});
const pointer = instancePointer('Cellar hub');
const records = [pointer, srv, txt, ...addresses].filter((record) => record !== undefined);

describe('responses to queries', () => {
  it('a query for the service gets the pointer and all records that are needed to reach the hub', () => {
    expect(responseTo({ name: '_latchkey._tcp.local', type: 'PTR' }, records)).toEqual({
      answers: [pointer],
      additionals: [srv, txt, ...addresses],
    });
  });

  it.each([
    ['PTR', '_LATCHKEY._tcp.Local', [pointer]],
    ['SRV', 'Cellar hub._latchkey._tcp.local', [srv]],
    ['A', '4F2A9C.local', addresses.slice(0, 1)],
    ['AAAA', '4f2a9c.local', addresses.slice(1)],
  ])('a query of type %s is answered in any letter case (%s)', (type, name, answers) => {
    expect(responseTo({ name, type }, records)?.answers).toEqual(answers);
  });

  it('a query for everything under a name gets all records of that name, and nothing else', () => {
    expect(responseTo({ name: '4f2a9c.local', type: 'ANY' }, records)).toEqual({ answers: addresses });
  });

  it.each([
    ['PTR', '_http._tcp.local'],
    ['ANY', 'other.local'],
    ['SRV', '4f2a9c.local'],
    ['UNKNOWN_65280', '4f2a9c.local'],
  ])('a query that no record matches gets no response (%s of %s)', (type, name) => {
    expect(responseTo({ name, type }, records)).toBe(null);
  });
});
