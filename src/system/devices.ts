import { BlockList, isIPv4, isIPv6 } from 'node:net';
import { type NetworkInterfaceInfo, networkInterfaces } from 'node:os';
import { withoutMapping } from './addresses.ts';

/** One whom a device's doings count to. */
export interface Share {
  /** An address, or a network as CIDR has it. */
  readonly of: string;
  /** How many times what one device may have, this one may. */
  readonly times: number;
}

/** What tells a machine's interfaces, as `node:os` does. */
export type Interfaces = () => Readonly<Record<string, readonly NetworkInterfaceInfo[] | undefined>>;

/** A neighbour may take any address of its network, and others who are honest live there too. */
const TIMES_OF_NETWORK = 3;
/** Bits of an IPv6 network that a device may take any address of (RFC 4291, 2.5.1). */
const NETWORK_BITS = 64;

/**
 * Whom a device counts to, the widest first: an IPv4 address is a device. Of IPv6 a distant device has a whole network (/64); on
 * the hub's own networks an address is a device, and all of such a network together get a larger share.
 * @param address of a peer, as its socket has it
 * @param interfaces this machine's
 */
export function sharesOf(address: string, interfaces: Interfaces = networkInterfaces): readonly Share[] {
  const unmapped = withoutMapping(address);
  if (!unmapped.includes(':')) return [{ of: unmapped, times: 1 }];
  const plain = address.replace(/%.*$/, '');
  const network = networkOf(plain);
  if (!isIPv6(plain) || !isOnLink(plain, interfaces())) return [{ of: network, times: 1 }];
  return [
    { of: network, times: TIMES_OF_NETWORK },
    { of: address, times: 1 },
  ];
}

/**
 * Whether an address is in an IPv4 subnet of this machine's interfaces, as they are configured. Of IPv6 none is: whoever sends
 * a Router Advertisement gives this machine further subnets, and may take any address.
 * @param address of a peer, as its socket has it
 * @param interfaces this machine's
 */
export function isInOwnIpv4Subnet(address: string, interfaces: Interfaces = networkInterfaces): boolean {
  const plain = withoutMapping(address);
  if (!isIPv4(plain)) return false;
  const own = new BlockList();
  for (const { family, address: its, cidr } of Object.values(interfaces()).flatMap((entries) => entries ?? [])) {
    if (family === 'IPv4' && cidr !== null) own.addSubnet(its, Number(cidr.split('/')[1]), 'ipv4');
  }
  return own.check(plain, 'ipv4');
}

function isOnLink(address: string, interfaces: ReturnType<Interfaces>): boolean {
  const own = new BlockList();
  own.addSubnet('fe80::', 10, 'ipv6');
  for (const { family, address: its } of Object.values(interfaces).flatMap((entries) => entries ?? [])) {
    // Never wider, whatever a Router Advertisement says; an address that a DHCP server gave comes alone (/128).
    if (family === 'IPv6') own.addSubnet(its, NETWORK_BITS, 'ipv6');
  }
  return own.check(address, 'ipv6');
}

function networkOf(address: string): string {
  const [left = '', right = ''] = address.split('::');
  const [head, tail] = [left, right].map((part) => part.split(':').filter((group) => group !== ''));
  const zeros = Array.from({ length: 8 - (head?.length ?? 0) - (tail?.length ?? 0) }, () => '0');
  return `${[...(head ?? []), ...zeros, ...(tail ?? [])].slice(0, 4).join(':')}::/${NETWORK_BITS}`;
}
