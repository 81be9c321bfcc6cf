import { BlockList, isIP } from 'node:net';
import {
  compareCodeUnits,
  compareInterfaceNames,
  type InterfaceAddress,
  type LanAddressOptions,
  type NetworkInterfaces,
  usableAddresses,
} from './lan-address.ts';

/** A network that the hub is on, by one or more interfaces, and the addresses at which it is reached there. */
export interface Segment {
  readonly interfaces: readonly SegmentInterface[];
  /** Those that are announced there, in a fixed order. */
  readonly addresses: readonly HostAddress[];
}

/** One interface, and how it is joined to its network. */
interface SegmentInterface {
  readonly name: string;
  /** Its first IPv4 address of those that are announced; null if there is none. */
  readonly ipv4: string | null;
  /** Whether it has an IPv6 address that is announced. */
  readonly ipv6: boolean;
  /** Changes whenever the cable was out or the radio away: see `interfaceEpoch`. */
  readonly epoch: string;
}

export interface HostAddress {
  readonly family: 'IPv4' | 'IPv6';
  readonly address: string;
}

export interface SegmentOptions extends LanAddressOptions {
  /** `lan.listen`: an address that the hub does not listen on is not announced. */
  readonly listen: readonly string[];
  /** An interface's {@link SegmentInterface.epoch}. */
  readonly epoch: (name: string) => string;
}

/**
 * The networks in which neighbours shall find the hub: of every interface that leads home, or, where the setting is an
 * address or an interface, of that alone. Interfaces that are on one network (Ethernet and Wi-Fi of one home) make one
 * segment: all their addresses are announced on each of them, because two sets would replace each other.
 */
export function findSegments(interfaces: NetworkInterfaces, options: SegmentOptions): readonly Segment[] {
  const { setting, listen, epoch } = options;
  const one = isIP(setting) !== 0;
  const usable = one ? addressesEqualTo(interfaces, setting) : usableAddresses(interfaces, options);
  const told = usable.filter(({ entry }) => !entry.internal && isListenedOn(entry.address, listen));
  return groupByNetwork(told).map((entries) => ({
    interfaces: [...Map.groupBy(entries, ({ name }) => baseInterfaceName(name))]
      .map(([name, own]) => ({
        name,
        ipv4: own.find(({ entry }) => entry.family === 'IPv4')?.entry.address ?? null,
        ipv6: own.some(({ entry }) => entry.family === 'IPv6'),
        epoch: epoch(name),
      }))
      .sort((a, b) => compareInterfaceNames(a.name, b.name)),
    addresses: entries
      .map(({ entry: { family, address } }) => ({ family, address }))
      .sort((a, b) => compareCodeUnits(a.family, b.family) || compareCodeUnits(a.address, b.address)),
  }));
}

function addressesEqualTo(interfaces: NetworkInterfaces, address: string): readonly InterfaceAddress[] {
  return Object.entries(interfaces).flatMap(([name, entries = []]) =>
    entries.filter((entry) => entry.address === address).map((entry) => ({ name, entry })),
  );
}

/** `eth0:1` is a second address of `eth0`. */
function baseInterfaceName(name: string): string {
  return name.replace(/:.*/, '');
}

/** The hub's listeners for IPv6 take no IPv4. */
function isListenedOn(address: string, listen: readonly string[]): boolean {
  return listen.includes(isIP(address) === 4 ? '0.0.0.0' : '::') || listen.includes(address);
}

/** Groups what shares an interface or a network. */
function groupByNetwork(entries: readonly InterfaceAddress[]): readonly (readonly InterfaceAddress[])[] {
  let groups: (readonly InterfaceAddress[])[] = [];
  for (const entry of entries) {
    const [joined, apart] = [[] as InterfaceAddress[], [] as (readonly InterfaceAddress[])[]];
    for (const group of groups) {
      if (group.some((other) => areOnOneNetwork(entry, other))) joined.push(...group);
      else apart.push(group);
    }
    groups = [...apart, [...joined, entry]];
  }
  return groups;
}

function areOnOneNetwork(a: InterfaceAddress, b: InterfaceAddress): boolean {
  if (baseInterfaceName(a.name) === baseInterfaceName(b.name)) return true;
  if (a.entry.family !== b.entry.family) return false;
  return cidrContains(a.entry.cidr, b.entry.address) || cidrContains(b.entry.cidr, a.entry.address);
}

function cidrContains(cidr: string | null, address: string): boolean {
  return cidr !== null && networkOf(cidr).check(address, isIP(address) === 4 ? 'ipv4' : 'ipv6');
}

/** @param cidr an interface's own, such as `192.168.1.20/24` */
function networkOf(cidr: string): BlockList {
  const [address = '', prefix] = cidr.split('/');
  const list = new BlockList();
  list.addSubnet(address, Number(prefix), isIP(address) === 4 ? 'ipv4' : 'ipv6');
  return list;
}

/** An address of this machine with its network, of any interface. */
export interface InterfaceCidr {
  readonly interface: string;
  readonly cidr: string;
}

/** Every address of this machine but loopback, also of interfaces that lead elsewhere. */
export function interfaceCidrs(interfaces: NetworkInterfaces): readonly InterfaceCidr[] {
  return Object.entries(interfaces).flatMap(([name, entries = []]) =>
    entries.flatMap(({ cidr, internal }) =>
      internal || cidr === null ? [] : { interface: baseInterfaceName(name), cidr },
    ),
  );
}

/** What this machine's addresses tell of a packet: the kernel hands every one to all sockets that listen to the group. */
export class OwnNetworks {
  readonly #networks: readonly { readonly interface: string; readonly network: BlockList }[];
  readonly #addresses: ReadonlySet<string>;

  constructor(attached: readonly InterfaceCidr[]) {
    this.#networks = attached.map((one) => ({ interface: one.interface, network: networkOf(one.cidr) }));
    this.#addresses = new Set(attached.map(({ cidr }) => cidr.replace(/\/.*/, '')));
  }

  /** Whether it is one of this machine's own addresses. */
  hasAddress(address: string): boolean {
    return this.#addresses.has(address);
  }

  /** Whether a packet may have come from a network of these interfaces: not where it is known to be from another one's. */
  acceptsSource(source: string, interfaces: readonly string[]): boolean {
    const around = this.#networksContaining(source);
    return around.length === 0 || around.some((one) => interfaces.includes(one.interface));
  }

  /** Whether an address is on a network of these interfaces, so that no router is between it and this machine. */
  isOnLink(address: string, interfaces: readonly string[]): boolean {
    return this.#networksContaining(address).some((one) => interfaces.includes(one.interface));
  }

  #networksContaining(address: string): readonly { readonly interface: string }[] {
    const family = isIP(address) === 4 ? 'ipv4' : 'ipv6';
    return this.#networks.filter(({ network }) => isIP(address) !== 0 && network.check(address, family));
  }
}
