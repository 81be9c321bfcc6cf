import type { NetworkInterfaceInfo } from 'node:os';
import { describe, expect, it } from 'vitest';
import { isInOwnIpv4Subnet, rateLimitKeys } from '../../../src/system/limits/rate-limit-keys.ts';

function interfacesWith(...cidrs: string[]): () => Record<string, NetworkInterfaceInfo[]> {
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

const HOME = interfacesWith('192.168.1.7/24', 'fd77:1:2:3::7/64', '2001:db8:a:b:c::7/128', 'fe80::7/64');

describe('rate limit keys of a device', () => {
  it.for(['192.168.1.7', '127.0.0.1', '203.0.113.9'])('an IPv4 device is limited by its address (%s)', (address) => {
    expect(rateLimitKeys(address, HOME)).toEqual([{ key: address, weight: 1 }]);
    // A dual-stack socket shows IPv4 addresses in this form.
    expect(rateLimitKeys(`::ffff:${address}`, HOME)).toEqual([{ key: address, weight: 1 }]);
  });

  it.for([
    ['fd77:1:2:3::99', 'fd77:1:2:3::/64'],
    ['fe80::1%eth0', 'fe80:0:0:0::/64'],
  ] as const)(
    'an IPv6 neighbour is limited by its address, and less strictly by its network (%s)',
    ([address, network]) => {
      expect(rateLimitKeys(address, HOME)).toEqual([
        { key: network, weight: 3 },
        { key: address, weight: 1 },
      ]);
    },
  );

  it.for([['fd77:1:2:4::99', 'fd77:1:2:4::/64']] as const)(
    'a device of another IPv6 network is limited by that network (%s)',
    ([address, network]) => {
      expect(rateLimitKeys(address, HOME)).toEqual([{ key: network, weight: 1 }]);
    },
  );

  it("the limit by network uses 64 bits, even if this machine's own prefix is shorter", () => {
    const wide = interfacesWith('2001:db8:0:1::7/1');
    expect(rateLimitKeys('2001:db8:0:2::9', wide)).toEqual([{ key: '2001:db8:0:2::/64', weight: 1 }]);
    expect(rateLimitKeys('2001:db8:0:1::9', wide)).toHaveLength(2);
  });
});

describe('own IPv4 subnet', () => {
  it.for(['192.168.1.1', '192.168.1.254', '::ffff:192.168.1.20'])(
    "the machine's own IPv4 subnets contain %s",
    (address) => {
      expect(isInOwnIpv4Subnet(address, HOME)).toBe(true);
    },
  );

  it.for(['192.168.2.1', 'fd77:1:2:3::99', '::ffff:203.0.113.9', ''])(
    "the machine's own IPv4 subnets do not contain %s",
    (address) => {
      expect(isInOwnIpv4Subnet(address, HOME)).toBe(false);
    },
  );

  it("an own IPv4 subnet is as large as its interface's prefix says, loopback included", () => {
    expect(isInOwnIpv4Subnet('10.200.0.1', interfacesWith('10.0.0.7/8'))).toBe(true);
    expect(isInOwnIpv4Subnet('10.0.0.8', interfacesWith('10.0.0.7/32'))).toBe(false);
    expect(isInOwnIpv4Subnet('127.0.0.9')).toBe(true);
  });
});
