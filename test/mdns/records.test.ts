import { describe, expect, it } from 'vitest';
import { instancePointer, toInstanceName, uniqueRecords } from '../../src/mdns/records/records.ts';

describe('an instance name', () => {
  it.each([
    ['Cellar hub', 'Cellar hub'],
    ['  Müllers Haus ☀ ', 'Müllers Haus ☀'],
    ['pi.fritz.box', 'pi-fritz-box'],
    ['line\nbreak\u0007', 'linebreak'],
    ['', 'Latchkey'],
    ['h'.repeat(80), 'h'.repeat(63)],
    ['☀'.repeat(30), '☀'.repeat(21)],
    ['🏠'.repeat(30), '🏠'.repeat(15)],
  ])('the name %j becomes the instance name %j', (name, expected) => {
    expect(toInstanceName(name)).toBe(expected);
  });

  it('an instance name keeps its suffix if it has to be cut', () => {
    expect(toInstanceName('h'.repeat(80), ' (4f2a)')).toBe(`${'h'.repeat(56)} (4f2a)`);
  });
});

describe('the records of the hub', () => {
  const service = {
    instanceName: 'Cellar hub',
    id: '4f2a9c',
    host: '4f2a9c.local',
    httpsPort: 8443,
    txt: { v: '1', http: '8480' },
  };

  it('the records of the service and its addresses are unique, and replace cached ones', () => {
    expect(uniqueRecords({ ...service, addresses: [{ family: 'IPv4', address: '10.0.0.1' }] })).toEqual([
      {
        name: 'Cellar hub._latchkey._tcp.local',
        type: 'SRV',
        ttl: 120,
        flush: true,
        data: { port: 8443, target: '4f2a9c.local' },
      },
      {
        name: 'Cellar hub._latchkey._tcp.local',
        type: 'TXT',
        ttl: 4500,
        flush: true,
        data: ['txtvers=1', 'id=4f2a9c', 'v=1', 'http=8480'].map((text) => Buffer.from(text)),
      },
      { name: '4f2a9c.local', type: 'A', ttl: 120, flush: true, data: '10.0.0.1' },
    ]);
  });

  it('the pointer from the service type to the hub does not replace those of other hubs', () => {
    expect(instancePointer('Cellar hub')).toEqual({
      name: '_latchkey._tcp.local',
      type: 'PTR',
      ttl: 4500,
      flush: false,
      data: 'Cellar hub._latchkey._tcp.local',
    });
  });
});
