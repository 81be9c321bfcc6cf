import { expect, it } from 'vitest';
import type { Timers } from '../../src/core/clock.ts';
import { type LanState, watchLan } from '../../src/mdns/networks/lan-watch.ts';

const NO_NETWORK: LanState = { address: null, addresses: [], segments: [], interfaceCidrs: [] };
const HOME = lan('192.168.1.20');
const MOVED = lan('192.168.1.77');

it('the watch of the network reports each change, and nothing else', () => {
  const readings = [NO_NETWORK, NO_NETWORK, HOME, HOME, 'failed', HOME, MOVED] as const;
  const { changes, ticks, watch } = watched(readings);
  expect(watch.current).toEqual(NO_NETWORK);
  ticks(readings.length - 1);
  expect(changes).toEqual([
    [HOME, NO_NETWORK],
    [MOVED, HOME],
  ]);
  expect(watch.current).toEqual(MOVED);
});

it('the watch of the network reports separately that a network with the same address was away briefly', () => {
  const replugged = lan('192.168.1.20', '2/3');
  const { changes, topologyChanges, ticks } = watched([HOME, replugged, replugged, MOVED]);
  ticks(3);
  expect(topologyChanges).toEqual([replugged]);
  expect(changes).toEqual([[MOVED, replugged]]);
});

it('the watch of the network stops when it is disposed', () => {
  const { changes, ticks, watch } = watched([NO_NETWORK, HOME]);
  watch[Symbol.dispose]();
  ticks(1);
  expect(changes).toEqual([]);
});

function watched(readings: readonly (LanState | 'failed')[]) {
  const [first = 'failed'] = readings;
  const remaining = [first, ...readings];
  const changes: [now: LanState, before: LanState][] = [];
  const topologyChanges: LanState[] = [];
  const due = new Set<() => void>();
  const timers: Timers = {
    after(_, run) {
      due.add(run);
      return () => due.delete(run);
    },
    sleep: () => Promise.reject(new Error('not used')),
  };
  const watch = watchLan({
    read() {
      const reading = remaining.shift();
      if (reading === undefined || reading === 'failed') throw new Error('no interfaces');
      return reading;
    },
    timers,
    interval: 5000,
  });
  watch.start({
    onChange: (now, before) => changes.push([now, before]),
    onTopologyChange: (now) => topologyChanges.push(now),
  });
  const ticks = (count: number) => {
    for (let tick = 0; tick < count; tick++) {
      for (const run of [...due]) {
        due.delete(run);
        run();
      }
    }
  };
  return { changes, topologyChanges, ticks, watch };
}

function lan(address: string, epoch = '2/1'): LanState {
  return {
    address: { address, family: 'IPv4', interface: 'eth0', loopback: false },
    addresses: [address],
    segments: [
      { interfaces: [{ name: 'eth0', ipv4: address, ipv6: false, epoch }], addresses: [{ family: 'IPv4', address }] },
    ],
    interfaceCidrs: [{ interface: 'eth0', cidr: `${address}/24` }],
  };
}
