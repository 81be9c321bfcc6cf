import { BlockList, isIP } from 'node:net';
import {
  compareCodeUnits,
  compareInterfaceNames,
  type InterfaceAddress,
  isListenedOn,
  type LanAddressOptions,
  type NetworkInterfaces,
  usableAddresses,
} from './lan-address.ts';

/** A network that the hub is connected to by one or more interfaces, and its addresses there. */
export interface Segment {
  readonly interfaces: readonly SegmentInterface[];
  /** The addresses that are announced there, in a fixed order. */
  readonly addresses: readonly HostAddress[];
}

/** One interface of a segment. */
interface SegmentInterface {
  readonly name: string;
  /** Its first announced IPv4 address; null if there is none. */
  readonly ipv4: string | null;
  /** Whether it has an announced IPv6 address. */
  readonly ipv6: boolean;
  /** Changes whenever the interface was disconnected: see `interfaceChangeMarker`. */
  readonly epoch: string;
}

/** An IP address without a zone. */
export interface HostAddress {
  readonly family: 'IPv4' | 'IPv6';
  readonly address: string;
}

interface SegmentOptions extends LanAddressOptions {
  /** `lan.listen`: an address that the hub does not listen on is not announced. */
  readonly listen: readonly string[];
  /** An interface's {@link SegmentInterface.epoch}. */
  readonly epoch: (name: string) => string;
}

/**
 * The segments on which the hub is announced: those of all interfaces to the home network, or only that of the
 * configured address or interface. Interfaces on the same network (Ethernet and Wi-Fi of one home) form one segment:
 * all their addresses are announced on each of them, because two different sets of records would replace each other.
 */
export function findSegments(interfaces: NetworkInterfaces, options: SegmentOptions): readonly Segment[] {
  const { setting, listen, epoch } = options;
  const isSingleAddress = isIP(setting) !== 0;
  const usable = isSingleAddress ? addressesEqualTo(interfaces, setting) : usableAddresses(interfaces, options);
  const announced = usable.filter(({ entry }) => !entry.internal && isListenedOn(entry.address, listen));
  return groupByNetwork(announced).map((entries) => ({
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

/** Groups addresses that share an interface or a network. */
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

/** An address of this machine with its prefix length, on any interface. */
export interface InterfaceCidr {
  readonly interface: string;
  readonly cidr: string;
}

/**
 * All addresses of this machine except loopback, including those of interfaces that do not lead to the home network.
 */
export function interfaceCidrs(interfaces: NetworkInterfaces): readonly InterfaceCidr[] {
  return Object.entries(interfaces).flatMap(([name, entries = []]) =>
    entries.flatMap(({ cidr, internal }) =>
      internal || cidr === null ? [] : { interface: baseInterfaceName(name), cidr },
    ),
  );
}

/**
 * This machine's addresses and networks. They show which interface a packet came from, because the kernel delivers each
 * one to all sockets that have joined the group.
 */
export class OwnNetworks {
  readonly #networks: readonly { readonly interface: string; readonly network: BlockList }[];
  readonly #addresses: ReadonlySet<string>;

  constructor(own: readonly InterfaceCidr[]) {
    this.#networks = own.map((one) => ({ interface: one.interface, network: networkOf(one.cidr) }));
    this.#addresses = new Set(own.map(({ cidr }) => cidr.replace(/\/.*/, '')));
  }

  /** Whether it is one of this machine's own addresses. */
  hasAddress(address: string): boolean {
    return this.#addresses.has(address);
  }

  /**
   * Whether a packet may come from a network of these interfaces; false if its source is only on another interface's
   * network.
   */
  acceptsSource(source: string, interfaces: readonly string[]): boolean {
    const networks = this.#networksContaining(source);
    return networks.length === 0 || networks.some((one) => interfaces.includes(one.interface));
  }

  /** Whether an address is on a network of these interfaces, without a router in between. */
  isOnLink(address: string, interfaces: readonly string[]): boolean {
    return this.#networksContaining(address).some((one) => interfaces.includes(one.interface));
  }

  #networksContaining(address: string): readonly { readonly interface: string }[] {
    const family = isIP(address) === 4 ? 'ipv4' : 'ipv6';
    return this.#networks.filter(({ network }) => isIP(address) !== 0 && network.check(address, family));
  }
}
