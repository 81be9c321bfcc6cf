import { BlockList, isIPv4, isIPv6 } from 'node:net';
import { type NetworkInterfaceInfo, networkInterfaces } from 'node:os';
import { unmapIpv4 } from '../addresses.ts';

/** What the requests and connections of a device are counted by. */
export interface RateLimitKey {
  /** An address, or a network as CIDR has it. */
  readonly key: string;
  /** How many times the limit of one device applies to it. */
  readonly weight: number;
}

/** What tells a machine's interfaces, as `node:os` does. */
export type ReadInterfaces = () => Readonly<Record<string, readonly NetworkInterfaceInfo[] | undefined>>;

/** A neighbour may take any address of its network, and honest devices are in it, too. */
const NETWORK_WEIGHT = 3;
/** Bits of an IPv6 network that a device may take any address of (RFC 4291, 2.5.1). */
const IPV6_PREFIX_LENGTH = 64;

/**
 * What a device is counted by, the widest key first: an IPv4 address is a device. Of IPv6 a distant device has a whole network
 * (/64); on the hub's own networks an address is a device, and such a network has a limit for all of its addresses together.
 * @param address of a peer, as its socket has it
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
 * Whether an address is in an IPv4 subnet of this machine's interfaces, as they are configured. Of IPv6 none is: whoever sends
 * a Router Advertisement gives this machine further subnets, and may take any address.
 * @param address of a peer, as its socket has it
 * @param interfaces this machine's
 */
export function isInOwnIpv4Subnet(address: string, interfaces: ReadInterfaces = networkInterfaces): boolean {
  const plain = unmapIpv4(address);
  if (!isIPv4(plain)) return false;
  const own = new BlockList();
  for (const { family, address: its, cidr } of Object.values(interfaces()).flatMap((entries) => entries ?? [])) {
    if (family === 'IPv4' && cidr !== null) own.addSubnet(its, Number(cidr.split('/')[1]), 'ipv4');
  }
  return own.check(plain, 'ipv4');
}

function isOnLink(address: string, interfaces: ReturnType<ReadInterfaces>): boolean {
  const own = new BlockList();
  own.addSubnet('fe80::', 10, 'ipv6');
  for (const { family, address: its } of Object.values(interfaces).flatMap((entries) => entries ?? [])) {
    // Never wider, whatever a Router Advertisement says; an address that a DHCP server gave comes alone (/128).
    if (family === 'IPv6') own.addSubnet(its, IPV6_PREFIX_LENGTH, 'ipv6');
  }
  return own.check(address, 'ipv6');
}

function networkOf(address: string): string {
  const [left = '', right = ''] = address.split('::');
  const [head, tail] = [left, right].map((part) => part.split(':').filter((group) => group !== ''));
  const zeros = Array.from({ length: 8 - (head?.length ?? 0) - (tail?.length ?? 0) }, () => '0');
  return `${[...(head ?? []), ...zeros, ...(tail ?? [])].slice(0, 4).join(':')}::/${IPV6_PREFIX_LENGTH}`;
}
