import { expect, it } from 'vitest';
import type { Timers } from '../../src/core/clock.ts';
import { probe } from '../../src/mdns/conflicts/probe.ts';
import type { ReceivedRecord, RecordSource } from '../../src/mdns/records/record-data.ts';
import { uniqueRecords } from '../../src/mdns/records/records.ts';
import type { MdnsLink } from '../../src/mdns/sockets/mdns-link.ts';

const OWN = uniqueRecords({
  instanceName: 'Cellar hub',
  id: 'aa11',
  host: 'aa11.local',
  httpsPort: 8443,
  txt: {},
  addresses: [{ family: 'IPv4', address: '10.0.0.5' }],
});
const INSTANCE = 'cellar hub._latchkey._tcp.local';
const HOST = 'aa11.local';

it.each<[what: string, how: RecordSource, record: ReceivedRecord, taken: string | null]>([
  ['nothing of ours', 'response', srv('aa22.local', 8443, 'Attic hub._latchkey._tcp.local'), null],
  ['our name', 'response', srv('aa22.local', 8443), INSTANCE],
  ['our name, in other letters', 'response', srv('aa22.local', 8443, INSTANCE.toUpperCase()), INSTANCE],
  ['our name, in a goodbye', 'response', { ...srv('aa22.local', 8443), ttl: 0 }, null],
  ['our name with our own data', 'response', srv('AA11.local', 8443), null],
  ['our name, as a program of our host', 'response', srv('aa11.local', 9443), INSTANCE],
  ['our host', 'response', address('10.0.0.4'), HOST],
  ['our host with our own address', 'response', address('10.0.0.5'), null],
  ["our host with another interface's address, repeated by a router", 'response', address('10.7.0.5'), null],
  ['our name, probing at the same time with lesser data', 'probe', srv('aa00.local', 8443), null],
  ['our name, probing at the same time with greater data, and gone', 'probe', srv('aa22.local', 8443), null],
  ['our own probe, heard back', 'probe', srv('aa11.local', 8443), null],
  [
    'our name, in a record that can not be read',
    'response',
    { name: INSTANCE, type: 'SRV', ttl: 120, data: null },
    null,
  ],
])('a probe decides whether the name is taken by a record with %s', async (_, how, record, taken) => {
  const { link } = linkOn({ hears: [record], how, at: 2 });
  expect((await run(link))?.name ?? null).toBe(taken);
});

it.each([
  ['a name', INSTANCE, srv('aa00.local', 8444)],
  ['a host', HOST, address('10.0.0.6')],
])(
  'the hub gives up %s if a host with greater data still probes for it after two waits of a second',
  async (_, name, record) => {
    const { link, probes } = linkOn({ hears: [record], how: 'probe', at: 'each' });
    const waited: number[] = [];
    expect((await run(link, { waited }))?.name).toBe(name);
    expect(probes()).toBe(3);
    expect(waited.filter((delay) => delay === 1000)).toHaveLength(2);
  },
);

it('the hub probes three times, a quarter of a second apart, after a random wait', async () => {
  const { link, probes } = linkOn();
  const waited: number[] = [];
  expect(await run(link, { waited })).toBeNull();
  expect(probes()).toBe(3);
  expect(waited).toEqual([125, 250, 250, 250]);
});

it('a probe ends at the first response, and stops listening', async () => {
  const { link, probes, listeners } = linkOn({ hears: [srv('aa22.local', 8443)], how: 'response', at: 1 });
  await run(link);
  expect(probes()).toBe(1);
  expect(listeners()).toBe(0);
});

it('a probe fails if the network is unreachable', async () => {
  const { link, listeners } = linkOn({ fails: true });
  await expect(run(link)).rejects.toThrow('ENETUNREACH');
  expect(listeners()).toBe(0);
});

function run(link: MdnsLink, { waited = [] as number[], signal = new AbortController().signal } = {}) {
  const timers: Timers = {
    after: () => () => {},
    async sleep(delay) {
      waited.push(delay);
    },
  };
  const random = { token: () => '', uuid: () => '', below: () => 0, fraction: () => 0.5 };
  return probe(link, OWN, { timers, random, signal, isOwnRecord: ({ data }) => data === '10.7.0.5' });
}

/** A link on which these records are heard at the hub's probe number `at`. */
function linkOn({
  hears = [],
  how = 'response',
  at = 1,
  fails = false,
}: {
  hears?: ReceivedRecord[];
  how?: RecordSource;
  at?: number | 'each';
  fails?: boolean;
} = {}) {
  type Listener = Parameters<MdnsLink['onRecords']>[0];
  const listeners = new Set<Listener>();
  let probes = 0;
  const link: MdnsLink = {
    serve() {},
    async respond() {},
    async probe() {
      if (fails) throw new Error('ENETUNREACH');
      probes++;
      if (at === 'each' || probes === at) for (const listener of listeners) listener(hears, how);
    },
    onRecords(listener) {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    async [Symbol.asyncDispose]() {},
  };
  return { link, probes: () => probes, listeners: () => listeners.size };
}

function srv(target: string, port: number, name = INSTANCE): ReceivedRecord {
  return { name, type: 'SRV', ttl: 120, data: { priority: 0, weight: 0, port, target } };
}

function address(data: string): ReceivedRecord {
  return { name: HOST, type: 'A', ttl: 120, data };
}
