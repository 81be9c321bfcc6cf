import { BlockList, isIPv4, isIPv6 } from 'node:net';
import { type NetworkInterfaceInfo, networkInterfaces } from 'node:os';
import { unmapIpv4 } from '../addresses.ts';

/** A key by which requests and connections are counted. */
export interface RateLimitKey {
  /** An IP address, or a network in CIDR notation. */
  readonly key: string;
  /** The limit of the key, as a multiple of the limit of one device. */
  readonly weight: number;
}

/** Reads the machine's interfaces, as `networkInterfaces` of `node:os` does. */
export type ReadInterfaces = () => Readonly<Record<string, readonly NetworkInterfaceInfo[] | undefined>>;

/** A device on the link can use any address of its network, which other devices share. */
const NETWORK_WEIGHT = 3;
/** Prefix length of a network in which a device can use any address (RFC 4291, 2.5.1). */
const IPV6_PREFIX_LENGTH = 64;

/**
 * The keys by which a device is counted, the widest first. An IPv4 address counts as a device. For IPv6, a remote /64
 * network counts as a device. On the hub's own networks an IPv6 address counts as a device, and the network has a limit
 * for all its addresses.
 * @param address of a peer, as reported by its socket
 * @param interfaces this machine's
 */
export function rateLimitKeys(
  address: string,
  interfaces: ReadInterfaces = networkInterfaces,
): readonly RateLimitKey[] {
  const unmapped = unmapIpv4(address);
  if (!unmapped.includes(':')) return [{ key: unmapped, weight: 1 }];
  const plain = address.replace(/%.*$/, '');
  const network = networkOf(plain);
  if (!isIPv6(plain) || !isOnLink(plain, interfaces())) return [{ key: network, weight: 1 }];
  return [
    { key: network, weight: NETWORK_WEIGHT },
    { key: address, weight: 1 },
  ];
}

/**
 * Whether an address is in an IPv4 subnet of this machine's interfaces. Always false for IPv6: any device on the link
 * can add subnets to this machine by a Router Advertisement, and can use any address.
 * @param address of a peer, as reported by its socket
 * @param interfaces this machine's
 */
export function isInOwnIpv4Subnet(address: string, interfaces: ReadInterfaces = networkInterfaces): boolean {
  const plain = unmapIpv4(address);
  if (!isIPv4(plain)) return false;
  const subnets = new BlockList();
  for (const { family, address: own, cidr } of Object.values(interfaces()).flatMap((entries) => entries ?? [])) {
    if (family === 'IPv4' && cidr !== null) subnets.addSubnet(own, Number(cidr.split('/')[1]), 'ipv4');
  }
  return subnets.check(plain, 'ipv4');
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

function networkOf(address: string): string {
  const [left = '', right = ''] = address.split('::');
  const [head, tail] = [left, right].map((part) => part.split(':').filter((group) => group !== ''));
  const zeros = Array.from({ length: 8 - (head?.length ?? 0) - (tail?.length ?? 0) }, () => '0');
  return `${[...(head ?? []), ...zeros, ...(tail ?? [])].slice(0, 4).join(':')}::/${IPV6_PREFIX_LENGTH}`;
}
