import { expect, it } from 'vitest';
import type { Timers } from '../../src/core/clock.ts';
import { type LanState, watchLan } from '../../src/mdns/networks/lan-watch.ts';

const AWAY: LanState = { address: null, addresses: [], segments: [], interfaceCidrs: [] };
const HOME = lan('192.168.1.20');
const MOVED = lan('192.168.1.77');

it('the watch of the network reports each change, and nothing else', () => {
  const readings = [AWAY, AWAY, HOME, HOME, 'failed', HOME, MOVED] as const;
  const { heard, ticks, watch } = watched(readings);
  expect(watch.current).toEqual(AWAY);
  ticks(readings.length - 1);
  expect(heard).toEqual([
    [HOME, AWAY],
    [MOVED, HOME],
  ]);
  expect(watch.current).toEqual(MOVED);
});

it('the watch of the network reports separately that a network with the same address was away briefly', () => {
  const replugged = lan('192.168.1.20', '2/3');
  const { heard, unrest, ticks } = watched([HOME, replugged, replugged, MOVED]);
  ticks(3);
  expect(unrest).toEqual([replugged]);
  expect(heard).toEqual([[MOVED, replugged]]);
});

it('the watch of the network stops when it is disposed', () => {
  const { heard, ticks, watch } = watched([AWAY, HOME]);
  watch[Symbol.dispose]();
  ticks(1);
  expect(heard).toEqual([]);
});

it('the watch of the network fails at once if its first reading fails', () => {
  expect(() => watched(['failed'])).toThrow('no interfaces');
});

function watched(readings: readonly (LanState | 'failed')[]) {
  const [first = 'failed'] = readings;
  const left = [first, ...readings];
  const heard: [now: LanState, before: LanState][] = [];
  const unrest: LanState[] = [];
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
      const reading = left.shift();
      if (reading === undefined || reading === 'failed') throw new Error('no interfaces');
      return reading;
    },
    timers,
    interval: 5000,
  });
  watch.start({ onChange: (now, before) => heard.push([now, before]), onTopologyChange: (now) => unrest.push(now) });
  const ticks = (count: number) => {
    for (let tick = 0; tick < count; tick++) {
      for (const run of [...due]) {
        due.delete(run);
        run();
      }
    }
  };
  return { heard, unrest, ticks, watch };
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
