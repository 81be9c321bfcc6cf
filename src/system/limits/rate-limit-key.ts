import { BlockList, isIPv6 } from 'node:net';
import { type NetworkInterfaceInfo, networkInterfaces } from 'node:os';
import { ipv6Bytes, unmapIpv4 } from '../addresses.ts';

/** Reads the machine's interfaces, as `networkInterfaces` of `node:os` does. */
export type ReadInterfaces = () => Readonly<Record<string, readonly NetworkInterfaceInfo[] | undefined>>;

/** Prefix length of a network in which a device can use any address (RFC 4291, 2.5.1). */
const IPV6_PREFIX_LENGTH = 64;

/**
 * The key by which requests and connections of a peer are counted: its address, or its /64 network for an IPv6 address
 * outside this machine's own networks.
 * @param address of the peer, as reported by its socket
 * @param interfaces this machine's
 */
export function rateLimitKey(address: string, interfaces: ReadInterfaces = networkInterfaces): string {
  const unmapped = unmapIpv4(address);
  const plain = unmapped.replace(/%.*$/, '');
  if (!isIPv6(plain) || isOnLink(plain, interfaces())) return unmapped;
  const bytes = ipv6Bytes(plain);
  const groups = [0, 2, 4, 6].map((offset) => bytes.readUInt16BE(offset).toString(16));
  return `${groups.join(':')}::/${IPV6_PREFIX_LENGTH}`;
}

function isOnLink(address: string, interfaces: ReturnType<ReadInterfaces>): boolean {
  const subnets = new BlockList();
  subnets.addSubnet('fe80::', 10, 'ipv6');
  for (const { family, address: own } of Object.values(interfaces).flatMap((entries) => entries ?? [])) {
    // Always /64: a Router Advertisement could announce a wider network, and an address from DHCPv6 has a /128.
    if (family === 'IPv6') subnets.addSubnet(own, IPV6_PREFIX_LENGTH, 'ipv6');
  }
  return subnets.check(address, 'ipv6');
}
