import type { NetworkInterfaceInfo } from 'node:os';
import { describe, expect, it } from 'vitest';
import type { NetworkInterfaces } from '../../src/mdns/networks/lan-address.ts';
import { findSegments, interfaceCidrs, OwnNetworks } from '../../src/mdns/networks/segments.ts';

const EVERYWHERE = ['0.0.0.0', '::'];
const ETHERNET = { eth0: [on('192.168.1.20/24')] };
const DOCKER = { docker0: [on('172.17.0.1/16')] };

describe('the segments of a hub', () => {
  it.each<[what: string, interfaces: NetworkInterfaces, expected: string[]]>([
    ['no network', {}, []],
    ['one network', ETHERNET, ['eth0: 192.168.1.20']],
    ['link-local addresses only', { eth0: [on('169.254.7.9/16'), on('fe80::1/64')] }, []],
    [
      'IPv4 and IPv6',
      { eth0: [on('fd00::20/64'), on('192.168.1.20/24'), on('fe80::1/64')] },
      ['eth0: 192.168.1.20 fd00::20'],
    ],
    ['two networks', { ...ETHERNET, wlan0: [on('10.0.0.7/24')] }, ['eth0: 192.168.1.20', 'wlan0: 10.0.0.7']],
    [
      'two interfaces on one network',
      { wlan0: [on('192.168.1.21/24')], ...ETHERNET },
      ['eth0 wlan0: 192.168.1.20 192.168.1.21'],
    ],
    [
      'a third interface that joins two',
      { ...ETHERNET, eth1: [on('10.0.0.1/24')], wlan0: [on('192.168.1.9/24'), on('10.0.0.7/24')] },
      ['eth0 eth1 wlan0: 10.0.0.1 10.0.0.7 192.168.1.20 192.168.1.9'],
    ],
    ['containers and tunnels', { ...ETHERNET, ...DOCKER, wg0: [on('10.9.0.1/24')] }, ['eth0: 192.168.1.20']],
    ["the home's own bridge", { vmbr0: [on('192.168.1.20/24')] }, ['vmbr0: 192.168.1.20']],
  ])('the hub finds its segments with %s', (_, interfaces, expected) => {
    expect(describeSegments(interfaces)).toEqual(expected);
  });

  it('a configured address or interface restricts the segments of the hub', () => {
    const both = { ...ETHERNET, wlan0: [on('10.0.0.7/24'), on('10.0.1.7/24')], ...DOCKER };
    expect(describeSegments(both, { setting: 'wlan0' })).toEqual(['wlan0: 10.0.0.7 10.0.1.7']);
    expect(describeSegments(both, { setting: '10.0.1.7' })).toEqual(['wlan0: 10.0.1.7']);
    expect(describeSegments(both, { setting: 'docker0' })).toEqual(['docker0: 172.17.0.1']);
    expect(describeSegments(both, { setting: '203.0.113.4' })).toEqual([]);
    expect(describeSegments({ lo: [on('127.0.0.1/8', true)] }, { setting: '127.0.0.1' })).toEqual([]);
  });

  it('the segments of the hub contain only addresses on which it listens', () => {
    const both = { eth0: [on('192.168.1.20/24'), on('fd00::20/64')] };
    expect(describeSegments(both, { listen: ['0.0.0.0'] })).toEqual(['eth0: 192.168.1.20']);
    expect(describeSegments(both, { listen: ['fd00::20'] })).toEqual(['eth0: fd00::20']);
    expect(describeSegments(both, { listen: ['127.0.0.1'] })).toEqual([]);
  });
});

describe('received mDNS packets', () => {
  const own = new OwnNetworks(interfaceCidrs({ ...ETHERNET, wlan0: [on('10.0.0.7/24')], ...DOCKER }));

  it.each([
    ['of the network itself', '192.168.1.77', true],
    ['of the hub itself', '192.168.1.20', true],
    ['of another network', '10.0.0.9', false],
    ['of a container', '172.17.0.2', false],
    ['of a host without an address of this network', '169.254.3.4', true],
  ])('a packet %s is accepted on eth0 or not: %s %s', (_, source, accepted) => {
    expect(own.acceptsSource(source, ['eth0'])).toBe(accepted);
  });

  it('a packet of a network with two interfaces is accepted on both', () => {
    const joined = new OwnNetworks(interfaceCidrs({ ...ETHERNET, wlan0: [on('192.168.1.21/24')] }));
    expect(joined.acceptsSource('192.168.1.77', ['wlan0'])).toBe(true);
    expect(joined.hasAddress('192.168.1.21')).toBe(true);
    expect(joined.hasAddress('192.168.1.77')).toBe(false);
  });
});

function describeSegments(
  interfaces: NetworkInterfaces,
  changes: { setting?: string; listen?: readonly string[] } = {},
): readonly string[] {
  const options = { setting: 'auto', listen: EVERYWHERE, epoch: () => '', ...changes };
  return findSegments(interfaces, options).map((segment) => {
    const names = segment.interfaces.map(({ name }) => name).join(' ');
    return `${names}: ${segment.addresses.map(({ address }) => address).join(' ')}`;
  });
}

function on(cidr: string, internal = false): NetworkInterfaceInfo {
  const address = cidr.replace(/\/.*/, '');
  const rest = { address, cidr, mac: '02:00:00:00:00:01', internal, netmask: '' };
  return address.includes(':') ? { ...rest, family: 'IPv6', scopeid: 0 } : { ...rest, family: 'IPv4' };
}
