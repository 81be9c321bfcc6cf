import { BlockList, isIPv6 } from 'node:net';
import { type NetworkInterfaceInfo, networkInterfaces } from 'node:os';
import { ipv6Bytes, unmapIpv4 } from '../addresses.ts';
import { monotonicNow } from '../clock.ts';

/** Reads the machine's interfaces, as `networkInterfaces` of `node:os` does. */
type ReadInterfaces = () => Readonly<Record<string, readonly NetworkInterfaceInfo[] | undefined>>;

/** Prefix length of a network in which a device can use any address (RFC 4291, 2.5.1). */
const IPV6_PREFIX_LENGTH = 64;

/** For how long what the machine has said of its networks counts, in ms. */
const NETWORKS_MAX_AGE = 5000;

/** This machine's networks as they were last read, on the boot clock in ms. */
let own: { readonly networks: BlockList; readonly readAt: number } | null = null;

/**
 * The key by which requests and connections of a peer are counted: its address, or its /64 network for an IPv6 address
 * outside this machine's own networks.
 * @param address of the peer, as reported by its socket
 * @param interfaces this machine's; left out: as they were a moment ago
 */
export function rateLimitKey(address: string, interfaces?: ReadInterfaces): string {
  const unmapped = unmapIpv4(address);
  const plain = unmapped.replace(/%.*$/, '');
  if (!isIPv6(plain)) return unmapped;
  const networks = interfaces === undefined ? ownNetworks() : networksOf(interfaces);
  if (networks.check(plain, 'ipv6')) return unmapped;
  const bytes = ipv6Bytes(plain);
  const groups = [0, 2, 4, 6].map((offset) => bytes.readUInt16BE(offset).toString(16));
  return `${groups.join(':')}::/${IPV6_PREFIX_LENGTH}`;
}

function ownNetworks(): BlockList {
  const now = monotonicNow();
  if (own === null || now - own.readAt >= NETWORKS_MAX_AGE)
    own = { networks: networksOf(networkInterfaces), readAt: now };
  return own.networks;
}

function networksOf(interfaces: ReadInterfaces): BlockList {
  const networks = new BlockList();
  networks.addSubnet('fe80::', 10, 'ipv6');
  for (const { family, address } of addressesOf(interfaces)) {
    // Always /64: a Router Advertisement could announce a wider network, and an address from DHCPv6 has a /128.
    if (family === 'IPv6') networks.addSubnet(address, IPV6_PREFIX_LENGTH, 'ipv6');
  }
  return networks;
}

/** None if the process has no file left to open, which reading them needs. */
function addressesOf(interfaces: ReadInterfaces): NetworkInterfaceInfo[] {
  try {
    return Object.values(interfaces()).flatMap((entries) => entries ?? []);
  } catch {
    return [];
  }
}
