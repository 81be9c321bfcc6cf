import { isIP } from 'node:net';
import type { NetworkInterfaceInfo } from 'node:os';
import { isLoopbackHost, isPrivateAddress, urlHost } from '../../system/addresses.ts';

/** What `os.networkInterfaces()` gives. */
export type NetworkInterfaces = Readonly<Record<string, readonly NetworkInterfaceInfo[] | undefined>>;

/** The address at which the home network reaches the hub. */
export interface LanAddress {
  readonly address: string;
  readonly family: 'IPv4' | 'IPv6';
  /** The interface that has the address; null where none has (a configured address that a router translates). */
  readonly interface: string | null;
  /** True on loopback, as in demos and tests: such a hub is not announced. */
  readonly loopback: boolean;
}

export interface LanAddressOptions {
  /** `lan.address`: `auto`, an IP address, or an interface's name. */
  readonly setting: string;
  /** The interfaces of the default routes, best first; an interface that carries one is preferred. */
  readonly defaultRoutes?: readonly string[];
}

/**
 * Chooses the address that the hub is reached at, or null where there is none (yet). Of several it takes the one on
 * the best default route's interface, then a private one, then the interface first in the alphabet (`eth0` before
 * `wlan0`); IPv6 only where there is no IPv4. A configured IP address is taken as it is; a configured interface is
 * taken whatever it leads to.
 */
export function chooseLanAddress(interfaces: NetworkInterfaces, options: LanAddressOptions): LanAddress | null {
  const { setting } = options;
  if (isIP(setting) === 0) return candidateAddresses(interfaces, options)[0] ?? null;
  const owner = Object.entries(interfaces).find(([, entries]) => entries?.some(({ address }) => address === setting));
  return {
    address: setting,
    family: isIP(setting) === 4 ? 'IPv4' : 'IPv6',
    interface: owner?.[0] ?? null,
    loopback: isLoopbackHost(urlHost(setting)),
  };
}

/**
 * Every address at which the home network may reach the hub, without zones and without loopback, the chosen one
 * first: IPv4, and IPv6 of global and unique local scope. For the SAN of the hub's certificate.
 */
export function lanAddresses(interfaces: NetworkInterfaces, options: LanAddressOptions): readonly string[] {
  const chosen = chooseLanAddress(interfaces, options);
  const usable = candidateAddresses(interfaces, { ...options, setting: 'auto' });
  const all = chosen === null || chosen.loopback ? usable : [chosen, ...usable];
  return [...new Set(all.map(({ address }) => address))];
}

function candidateAddresses(interfaces: NetworkInterfaces, options: LanAddressOptions): LanAddress[] {
  return usableAddresses(interfaces, options).map(({ name, entry: { address, family, internal } }) => ({
    address,
    family,
    interface: name,
    loopback: internal,
  }));
}

/** An address of an interface. */
export interface InterfaceAddress {
  /** The interface's. */
  readonly name: string;
  readonly entry: NetworkInterfaceInfo;
}

/** All usable addresses, best first. A setting that is an IP address has no part in it. */
export function usableAddresses(
  interfaces: NetworkInterfaces,
  { setting, defaultRoutes = [] }: LanAddressOptions,
): readonly InterfaceAddress[] {
  return Object.entries(interfaces)
    .filter(([name]) => (setting === 'auto' ? isHomeInterface(name, defaultRoutes) : name === setting))
    .flatMap(([name, entries = []]) =>
      entries
        .filter((entry) => (setting === 'auto' ? isOnLan(entry) : isReachable(entry)))
        .map((entry) => ({ name, entry, rank: rank(name, entry, defaultRoutes) })),
    )
    .sort((a, b) => compareRanks(a.rank, b.rank) || compareInterfaceNames(a.name, b.name));
}

/** `eth2` before `eth10`. By hand: collation loads megabytes of tables, and that every few seconds anew. */
export function compareInterfaceNames(a: string, b: string): number {
  const [one, other] = [a, b].map((name) => name.replaceAll(/\d+/g, (digits) => digits.padStart(15, '0')));
  return compareCodeUnits(one ?? a, other ?? b);
}

/** By code units. */
export function compareCodeUnits(a: string, b: string): number {
  if (a === b) return 0;
  return a < b ? -1 : 1;
}

/** A bridge with the default route on it is the home's own, and none of a container engine's. */
function isHomeInterface(name: string, defaultRoutes: readonly string[]): boolean {
  return !NON_HOME_INTERFACES.test(name) || (name.startsWith('br-') && defaultRoutes.includes(name));
}

/** Tunnels and point-to-point links have no hardware address, or a network of one address. */
function isOnLan(entry: NetworkInterfaceInfo): boolean {
  if (entry.internal || entry.mac === '00:00:00:00:00:00') return false;
  return isReachable(entry) && !(entry.family === 'IPv4' && entry.netmask === '255.255.255.255');
}

/** Whether a URL with this address works from another machine (or, on loopback, from this one). */
function isReachable({ family, address, internal }: NetworkInterfaceInfo): boolean {
  // RFC 3927: link-local.
  if (family === 'IPv4') return !address.startsWith('169.254.');
  return internal || isUniqueLocal(address) || isGlobal(address);
}

/** Smaller is better, compared position by position. */
function rank(name: string, { family, address }: NetworkInterfaceInfo, defaultRoutes: readonly string[]): number[] {
  const route = defaultRoutes.indexOf(name);
  return [family === 'IPv4' ? 0 : 1, route === -1 ? defaultRoutes.length : route, isPrivateAddress(address) ? 0 : 1];
}

function compareRanks(a: readonly number[], b: readonly number[]): number {
  for (const [index, value] of a.entries()) {
    const difference = value - (b[index] ?? 0);
    if (difference !== 0) return difference;
  }
  return 0;
}

/** RFC 4193: fc00::/7. */
function isUniqueLocal(address: string): boolean {
  return /^f[cd]/i.test(address);
}

/** RFC 4291 section 2.4, what is assigned of it: 2000::/3. */
function isGlobal(address: string): boolean {
  return /^[23][0-9a-f]{3}:/i.test(address);
}

const NON_HOME_PATTERNS = [
  'lo$ dummy ifb nlmon teql',
  // Containers and their networks, also those that home automation brings.
  'docker br- veth podman cni cali cilium flannel kube nodelocaldns nerdctl weave lxc lxd incus waydroid',
  'hassio balena resin supervisor\\d ipvl macvtap ovs- ovn',
  // Virtual machines.
  'virbr vnet vmnet vboxnet mpqemubr fwbr fwln fwpr',
  // Tunnels and private networks.
  'wg wt\\d tun tap utun ppp ipsec xfrm vti ip_vti ip6 ipip sit gre erspan l2tp vxlan geneve',
  'tailscale zt nordlynx nordtun proton pvpn ipv6leak mullvad CloudflareWARP ham\\d nebula cscotun gpd\\d',
  // Mobile networks, and Wi-Fi from one device to another.
  'wwan rmnet ccmni p2p',
];

/**
 * The names of interfaces that lead to containers, virtual machines, tunnels and providers, but not into the home network.
 * A home's own bridge (`br0`, `vmbr0`), bond or VLAN is none of them.
 */
const NON_HOME_INTERFACES = new RegExp(`^(${NON_HOME_PATTERNS.join(' ').replaceAll(' ', '|')})`);
