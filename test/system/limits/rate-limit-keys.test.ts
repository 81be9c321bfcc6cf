import type { NetworkInterfaceInfo } from 'node:os';
import { describe, expect, it } from 'vitest';
import { isInOwnIpv4Subnet, rateLimitKeys } from '../../../src/system/limits/rate-limit-keys.ts';

function own(...cidrs: string[]): () => Record<string, NetworkInterfaceInfo[]> {
  const entries = cidrs.map((cidr) => ({
    address: cidr.split('/')[0] ?? '',
    netmask: '',
    mac: '00:00:00:00:00:00',
    internal: false,
    ...(cidr.includes(':') ? { family: 'IPv6' as const, scopeid: 0 } : { family: 'IPv4' as const }),
    cidr,
  }));
  return () => ({ eth0: entries });
}

const HOME = own('192.168.1.7/24', 'fd77:1:2:3::7/64', '2001:db8:a:b:c::7/128', 'fe80::7/64');

describe('a device counts', () => {
  it.for(['192.168.1.7', '127.0.0.1', '203.0.113.9'])('by its address, where that is IPv4 (%s)', (address) => {
    expect(rateLimitKeys(address, HOME)).toEqual([{ key: address, weight: 1 }]);
    // As a socket for both families has it.
    expect(rateLimitKeys(`::ffff:${address}`, HOME)).toEqual([{ key: address, weight: 1 }]);
  });

  it.for([
    ['fd77:1:2:3::99', 'fd77:1:2:3::/64'],
    ['fd77:1:2:3:aaaa:bbbb:cccc:dddd', 'fd77:1:2:3::/64'],
    ['2001:db8:a:b::1', '2001:db8:a:b::/64'],
    ['fe80::1', 'fe80:0:0:0::/64'],
    ['fe80::1%eth0', 'fe80:0:0:0::/64'],
  ] as const)('by its address, and less by its network, where it is a neighbour (%s)', ([address, network]) => {
    expect(rateLimitKeys(address, HOME)).toEqual([
      { key: network, weight: 3 },
      { key: address, weight: 1 },
    ]);
  });

  it.for([
    ['fd77:1:2:4::99', 'fd77:1:2:4::/64'],
    ['2001:db8:a:c::1', '2001:db8:a:c::/64'],
    ['2001:db8::', '2001:db8:0:0::/64'],
    ['2001::1:2:3:4:5', '2001:0:0:1::/64'],
  ] as const)('by its network where that is another one (%s)', ([address, network]) => {
    expect(rateLimitKeys(address, HOME)).toEqual([{ key: network, weight: 1 }]);
  });

  it('by its network of 64 bits, where this machine was given a wider one', () => {
    const wide = own('2001:db8:0:1::7/1');
    expect(rateLimitKeys('2001:db8:0:2::9', wide)).toEqual([{ key: '2001:db8:0:2::/64', weight: 1 }]);
    expect(rateLimitKeys('2001:db8:0:1::9', wide)).toHaveLength(2);
  });

  it('somehow where it has gone before anybody looked', () => {
    expect(rateLimitKeys('', HOME)).toEqual([{ key: '', weight: 1 }]);
  });

  it('by the networks that this machine has', () => {
    expect(rateLimitKeys('fe80::1', own('192.168.1.7/24'))).toHaveLength(2);
    expect(rateLimitKeys('::1', own('::1/128'))).toHaveLength(2);
    expect(rateLimitKeys('2001:db8::1')).toEqual([{ key: '2001:db8:0:0::/64', weight: 1 }]);
  });
});

describe('an IPv4 subnet of this machine’s own', () => {
  it.for(['192.168.1.1', '192.168.1.254', '::ffff:192.168.1.20'])('has %s in it', (address) => {
    expect(isInOwnIpv4Subnet(address, HOME)).toBe(true);
  });

  it.for(['192.168.2.1', '203.0.113.9', 'fe80::1', 'fd77:1:2:3::99', '::ffff:203.0.113.9', ''])(
    'does not have %s in it',
    (address) => {
      expect(isInOwnIpv4Subnet(address, HOME)).toBe(false);
    },
  );

  it('is as wide as its interface says, loopback too', () => {
    expect(isInOwnIpv4Subnet('10.200.0.1', own('10.0.0.7/8'))).toBe(true);
    expect(isInOwnIpv4Subnet('10.0.0.8', own('10.0.0.7/32'))).toBe(false);
    expect(isInOwnIpv4Subnet('127.0.0.9')).toBe(true);
  });
});
