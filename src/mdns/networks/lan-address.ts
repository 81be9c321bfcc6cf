import { isIP } from 'node:net';
import type { NetworkInterfaceInfo } from 'node:os';
import { isLoopbackHost, isPrivateAddress, urlHost } from '../../system/addresses.ts';

/** The result of `os.networkInterfaces()`. */
export type NetworkInterfaces = Readonly<Record<string, readonly NetworkInterfaceInfo[] | undefined>>;

/** The hub's main address on the home network. */
export interface LanAddress {
  readonly address: string;
  readonly family: 'IPv4' | 'IPv6';
  /** The interface that has the address; null if none has it (a configured address that a router translates). */
  readonly interface: string | null;
  /** True on loopback, for example in demos and tests: such a hub is not announced. */
  readonly loopback: boolean;
}

/** The preferences for choosing an address. */
export interface LanAddressOptions {
  /** `lan.address`: `auto`, an IP address, or an interface's name. */
  readonly setting: string;
  /** `lan.listen`. With `auto` only an address that the hub listens on is chosen. Default: all addresses. */
  readonly listen?: readonly string[];
  /** The interfaces with a default route, best first; they are preferred. */
  readonly defaultRoutes?: readonly string[];
}

/**
 * Chooses the hub's main address; null if there is none (yet). It prefers IPv4 to IPv6, then the interface of the best
 * default route, then a private address, then the first interface in the alphabet (`eth0` before `wlan0`). If the
 * hub listens on none of these, it is an address that `lan.listen` names. A configured IP address is used as it is; a
 * configured interface is used whatever network it leads to.
 */
export function chooseLanAddress(interfaces: NetworkInterfaces, options: LanAddressOptions): LanAddress | null {
  const { setting, listen = [] } = options;
  if (isIP(setting) !== 0) return describeAddress(interfaces, setting);
  const [best] = candidateAddresses(interfaces, options);
  if (best !== undefined || setting !== 'auto') return best ?? null;
  const own = listen
    .map((address) => describeAddress(interfaces, address))
    .filter((one) => one.interface !== null || one.loopback);
  return own.find(({ loopback }) => !loopback) ?? own[0] ?? null;
}

function describeAddress(interfaces: NetworkInterfaces, address: string): LanAddress {
  const owner = Object.entries(interfaces).find(([, entries]) => entries?.some((entry) => entry.address === address));
  return {
    address,
    family: isIP(address) === 4 ? 'IPv4' : 'IPv6',
    interface: owner?.[0] ?? null,
    loopback: isLoopbackHost(urlHost(address)),
  };
}

/** Whether the hub listens on an address: its IPv6 listeners accept no IPv4 connections. */
export function isListenedOn(address: string, listen: readonly string[]): boolean {
  return listen.includes(isIP(address) === 4 ? '0.0.0.0' : '::') || listen.includes(address);
}

/**
 * All addresses at which the home network may reach the hub, the main one first: IPv4, and IPv6 of global and unique
 * local scope, without zones and loopback. For the SAN of the server certificate.
 */
export function lanAddresses(interfaces: NetworkInterfaces, options: LanAddressOptions): readonly string[] {
  const chosen = chooseLanAddress(interfaces, options);
  const usable = candidateAddresses(interfaces, { ...options, setting: 'auto' });
  const all = chosen === null || chosen.loopback ? usable : [chosen, ...usable];
  return [...new Set(all.map(({ address }) => address))];
}

function candidateAddresses(interfaces: NetworkInterfaces, options: LanAddressOptions): LanAddress[] {
  const { setting, listen } = options;
  return usableAddresses(interfaces, options)
    .filter(({ entry }) => setting !== 'auto' || listen === undefined || isListenedOn(entry.address, listen))
    .map(({ name, entry: { address, family, internal } }) => ({
      address,
      family,
      interface: name,
      loopback: internal,
    }));
}

/** An address and its interface. */
export interface InterfaceAddress {
  /** The interface's name. */
  readonly name: string;
  readonly entry: NetworkInterfaceInfo;
}

/** All usable addresses, best first. Ignores a setting that is an IP address. */
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

/** Orders `eth2` before `eth10`. Without Intl collation, which would load megabytes of tables every few seconds. */
export function compareInterfaceNames(a: string, b: string): number {
  const [one, other] = [a, b].map((name) => name.replaceAll(/\d+/g, (digits) => digits.padStart(15, '0')));
  return compareCodeUnits(one ?? a, other ?? b);
}

/** Compares by UTF-16 code units. */
export function compareCodeUnits(a: string, b: string): number {
  if (a === b) return 0;
  return a < b ? -1 : 1;
}

/** A `br-…` bridge with a default route belongs to the home, not to a container engine. */
function isHomeInterface(name: string, defaultRoutes: readonly string[]): boolean {
  return !NON_HOME_INTERFACES.test(name) || (name.startsWith('br-') && defaultRoutes.includes(name));
}

/** False for tunnels and point-to-point links, which have no hardware address, or a network of a single address. */
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

/** RFC 4291 section 2.4; of the global addresses only 2000::/3 is assigned. */
function isGlobal(address: string): boolean {
  return /^[23][0-9a-f]{3}:/i.test(address);
}

const NON_HOME_PATTERNS = [
  'lo$ dummy ifb nlmon teql',
  // Containers and their networks, including those of home automation systems.
  'docker br- veth podman cni cali cilium flannel kube nodelocaldns nerdctl weave lxc lxd incus waydroid',
  'hassio balena resin supervisor\\d ipvl macvtap ovs- ovn',
  // Virtual machines.
  'virbr vnet vmnet vboxnet mpqemubr fwbr fwln fwpr',
  // Tunnels and private networks.
  'wg wt\\d tun tap utun ppp ipsec xfrm vti ip_vti ip6 ipip sit gre erspan l2tp vxlan geneve',
  'tailscale zt nordlynx nordtun proton pvpn ipv6leak mullvad CloudflareWARP ham\\d nebula cscotun gpd\\d',
  // Mobile networks and Wi-Fi Direct.
  'wwan rmnet ccmni p2p',
];

/**
 * Matches the names of interfaces that lead to containers, virtual machines, tunnels and providers instead of the home
 * network. It must not match a home's own bridge (`br0`, `vmbr0`), bond or VLAN.
 */
const NON_HOME_INTERFACES = new RegExp(`^(${NON_HOME_PATTERNS.join(' ').replaceAll(' ', '|')})`);
