import type { NetworkInterfaceInfo } from 'node:os';
import { expect, it } from 'vitest';
import { rateLimitKey } from '../../../src/system/limits/rate-limit-key.ts';

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

it.for(['192.168.1.7', '127.0.0.1', '203.0.113.9'])('an IPv4 device is counted by its address (%s)', (address) => {
  expect(rateLimitKey(address, HOME)).toBe(address);
  // A dual-stack socket shows IPv4 addresses in this form.
  expect(rateLimitKey(`::ffff:${address}`, HOME)).toBe(address);
});

it.for(['fd77:1:2:3::99', 'fe80::1%eth0', '2001:db8:a:b::9'])(
  "a device of the hub's own IPv6 networks is counted by its address (%s)",
  (address) => {
    expect(rateLimitKey(address, HOME)).toBe(address);
  },
);

it.for([
  ['fd77:1:2:4::99', 'fd77:1:2:4::/64'],
  ['2001:db8::1:2', '2001:db8:0:0::/64'],
  ['2001:db8:0:1:2:3:4:5', '2001:db8:0:1::/64'],
  ['::1:2', '0:0:0:0::/64'],
] as const)('a device of another IPv6 network is counted by that network (%s)', ([address, network]) => {
  expect(rateLimitKey(address, HOME)).toBe(network);
});

it("an own IPv6 network has 64 bits, even if this machine's prefix is shorter", () => {
  const wide = interfacesWith('2001:db8:0:1::7/1');
  expect(rateLimitKey('2001:db8:0:2::9', wide)).toBe('2001:db8:0:2::/64');
  expect(rateLimitKey('2001:db8:0:1::9', wide)).toBe('2001:db8:0:1::9');
});

it('a device is counted by its network while no file can be opened, which reading the interfaces needs', () => {
  const failing = () => {
    throw new Error('uv_interface_addresses returned Unknown system error 24');
  };
  expect(rateLimitKey('fd77:1:2:3::99', failing)).toBe('fd77:1:2:3::/64');
  expect(rateLimitKey('fe80::1%eth0', failing)).toBe('fe80::1%eth0');
});
