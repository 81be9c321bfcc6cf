import type { NetworkInterfaceInfo } from 'node:os';
import { describe, expect, it } from 'vitest';
import {
  chooseLanAddress,
  isListenedOn,
  lanAddresses,
  type NetworkInterfaces,
} from '../../src/mdns/networks/lan-address.ts';

const LOOPBACK: NetworkInterfaces = { lo: [on('127.0.0.1/8', { internal: true }), on('::1/128', { internal: true })] };

describe('the address of the hub', () => {
  it.each<[what: string, interfaces: NetworkInterfaces, defaultRoutes: string[], expected: string | null]>([
    ['no network', LOOPBACK, [], null],
    ['one wired network', { eth0: [on('192.168.1.20/24')] }, ['eth0'], '192.168.1.20 on eth0'],
    ['link-local only', { eth0: [on('169.254.7.9/16'), on('fe80::1/64')] }, [], null],
    [
      'wired and wireless',
      { wlan0: [on('192.168.1.21/24')], eth0: [on('192.168.1.20/24')] },
      [],
      '192.168.1.20 on eth0',
    ],
    ['the default route', { eth0: [on('10.1.0.1/24')], wlan0: [on('10.2.0.1/24')] }, ['wlan0'], '10.2.0.1 on wlan0'],
    [
      'two default routes, the best one through a tunnel',
      { eth0: [on('10.1.0.1/24')], wlan0: [on('10.2.0.1/24')], wg0: [on('10.9.0.2/24')] },
      ['wg0', 'wlan0', 'eth0'],
      '10.2.0.1 on wlan0',
    ],
    ['a public and a private address', { eth0: [on('203.0.113.4/24'), on('172.16.0.9/12')] }, [], '172.16.0.9 on eth0'],
    [
      'no IPv4, a unique local and a global IPv6 address',
      { eth0: [on('2001:db8::4/64'), on('fd00::4/64')] },
      [],
      'fd00::4 on eth0',
    ],
    [
      'IPv6 on the default route, IPv4 elsewhere',
      { eth0: [on('fd00::4/64')], wlan0: [on('10.0.0.1/8')] },
      ['eth0'],
      '10.0.0.1 on wlan0',
    ],
    ['a point-to-point link', { enx0: [on('10.64.1.2/32')] }, ['enx0'], null],
    ['a tunnel with a name of its own', { office: [on('10.8.0.2/24', { mac: '00:00:00:00:00:00' })] }, [], null],
    ["the home's own bridge", { br0: [on('10.0.0.1/24')] }, [], '10.0.0.1 on br0'],
    ["a router's bridge", { 'br-lan': [on('10.0.0.1/24')] }, ['br-lan'], '10.0.0.1 on br-lan'],
  ])('the hub chooses its address with %s', (_, interfaces, defaultRoutes, expected) => {
    const chosen = chooseLanAddress({ ...LOOPBACK, ...interfaces }, { setting: 'auto', defaultRoutes });
    expect(chosen && `${chosen.address} on ${chosen.interface}`).toBe(expected);
  });

  it('the hub never chooses an address of a container, a tunnel or a modem', () => {
    const containers =
      'docker0 docker_gwbridge br-3f2a9c1b7d54 veth12ab virbr0 vnet3 podman1 cni0 lxcbr0 lxdbr0 hassio';
    const tunnels = 'wg0 tun0 tap0 tailscale0 zt5u4rj nordlynx proton0 wg-home wt0';
    const others = 'ppp0 wwan0 dummy0 macvtap0 ipvl0 p2p-wlan0-0';
    for (const name of `${containers} ${tunnels} ${others}`.split(' ')) {
      const interfaces = { [name]: [on('172.17.0.1/16'), on('fd00::1/64')] };
      expect(chooseLanAddress(interfaces, { setting: 'auto' }), name).toBeNull();
      expect(lanAddresses(interfaces, { setting: 'auto' }), name).toEqual([]);
    }
  });

  it.each(['br0', 'vmbr0', 'bond0', 'eth0.10', 'wlan0', 'wlx00c0ca', 'enp3s0', 'uap0', 'end0'])(
    'the hub may choose an address on %s',
    (name) => {
      expect(chooseLanAddress({ [name]: [on('192.168.1.20/24')] }, { setting: 'auto' })?.interface).toBe(name);
    },
  );

  it.each<[listen: string[], expected: string | null]>([
    [['127.0.0.1'], '127.0.0.1'],
    [['127.0.0.1', '::1', '10.2.0.1'], '10.2.0.1'],
    [['127.0.0.1', '10.9.0.2'], '10.9.0.2'],
    [['10.2.0.99'], null],
    [['::'], 'fd00::4'],
    [['0.0.0.0', '::'], '10.1.0.1'],
  ])('a hub that listens on %j has an address that it listens on', (listen, expected) => {
    const interfaces = {
      ...LOOPBACK,
      eth0: [on('10.1.0.1/24'), on('fd00::4/64')],
      wlan0: [on('10.2.0.1/24')],
      wg0: [on('10.9.0.2/32')],
    };
    const options = { setting: 'auto', listen, defaultRoutes: ['eth0'] };
    expect(chooseLanAddress(interfaces, options)?.address ?? null).toBe(expected);
    for (const address of lanAddresses(interfaces, options)) expect(isListenedOn(address, listen)).toBe(true);
  });

  it('the address of the hub does not depend on the order of the interfaces', () => {
    const listed = Object.entries({ wlan0: [on('10.0.0.1/8')], eth1: [on('10.0.1.1/8')], eth0: [on('10.0.2.1/8')] });
    for (const order of [listed, listed.toReversed()]) {
      expect(chooseLanAddress(Object.fromEntries(order), { setting: 'auto' })?.interface).toBe('eth0');
    }
  });
});

const interfaces = { ...LOOPBACK, eth0: [on('10.0.0.1/24')], wg0: [on('10.9.0.2/32'), on('fd00:9::2/128')] };

it.each([
  ['127.0.0.1', { address: '127.0.0.1', family: 'IPv4', interface: 'lo', loopback: true }],
  ['127.0.0.53', { address: '127.0.0.53', family: 'IPv4', interface: null, loopback: true }],
  ['::1', { address: '::1', family: 'IPv6', interface: 'lo', loopback: true }],
  ['10.0.0.1', { address: '10.0.0.1', family: 'IPv4', interface: 'eth0', loopback: false }],
  ['192.0.2.99', { address: '192.0.2.99', family: 'IPv4', interface: null, loopback: false }],
  ['lo', { address: '127.0.0.1', family: 'IPv4', interface: 'lo', loopback: true }],
  ['wg0', { address: '10.9.0.2', family: 'IPv4', interface: 'wg0', loopback: false }],
  ['wlan0', null],
])('the hub uses the configured address %s unchanged', (setting, expected) => {
  expect(chooseLanAddress(interfaces, { setting })).toEqual(expected);
});

describe('the addresses in the server certificate', () => {
  const interfaces = {
    ...LOOPBACK,
    wlan0: [on('192.168.1.21/24'), on('fe80::21/64')],
    eth0: [on('192.168.1.20/24'), on('2001:db8::20/64'), on('fd00::20/64'), on('fe80::20/64')],
    docker0: [on('172.17.0.1/16')],
  };

  it('the server certificate contains all addresses that the home network can use, the chosen one first', () => {
    expect(lanAddresses(interfaces, { setting: 'auto', defaultRoutes: ['wlan0'] })).toEqual([
      '192.168.1.21',
      '192.168.1.20',
      'fd00::20',
      '2001:db8::20',
    ]);
  });

  it('the server certificate contains a configured address, even one that only the router has', () => {
    expect(lanAddresses(interfaces, { setting: '203.0.113.9' })[0]).toBe('203.0.113.9');
  });
});

function on(cidr: string, options: { mac?: string; internal?: boolean } = {}): NetworkInterfaceInfo {
  const [address = '', prefix = ''] = cidr.split('/');
  const rest = { address, cidr, mac: '02:00:00:00:00:01', internal: false, ...options };
  if (address.includes(':')) return { ...rest, family: 'IPv6', netmask: '', scopeid: 0 };
  const mask = (0xffffffff << (32 - Number(prefix))) >>> 0;
  const netmask = [24, 16, 8, 0].map((shift) => (mask >>> shift) & 0xff).join('.');
  return { ...rest, family: 'IPv4', netmask };
}
